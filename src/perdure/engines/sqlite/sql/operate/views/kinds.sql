-- name: kinds
SELECT name, words, keep, limits FROM {kind} ORDER BY name;

-- name: declare
INSERT INTO {kind} (name, words, keep, limits, changed_at) VALUES (:name, :words, :keep, :limits, :now)
ON CONFLICT (name) DO UPDATE
SET words = excluded.words, keep = excluded.keep, limits = excluded.limits, changed_at = excluded.changed_at;

-- name: forget
DELETE FROM {kind} WHERE name = :name;
