-- name: kinds
SELECT name, words, keep FROM {kind} ORDER BY name;

-- name: declare
INSERT INTO {kind} (name, words, keep, changed_at) VALUES (:name, :words, :keep, :now)
ON CONFLICT (name) DO UPDATE SET words = excluded.words, keep = excluded.keep, changed_at = excluded.changed_at;

-- name: forget
DELETE FROM {kind} WHERE name = :name;
