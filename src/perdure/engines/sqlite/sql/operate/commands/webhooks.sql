-- name: all
SELECT name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at FROM {webhook} ORDER BY name;

-- name: one
SELECT name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at FROM {webhook} WHERE name = :name;

-- name: save
-- A secret that is not given stays as it is.
INSERT INTO {webhook} (name, definition, secret, cursor, created_at, changed_at)
VALUES (:name, :definition, :secret, :cursor, :now, :now)
ON CONFLICT (name) DO UPDATE SET
    definition = excluded.definition, secret = COALESCE(excluded.secret, secret), changed_at = excluded.changed_at;

-- name: pause
UPDATE {webhook} SET paused_at = CASE WHEN :paused THEN COALESCE(paused_at, :now) END, changed_at = :now
WHERE name = :name;

-- name: delete
DELETE FROM {webhook} WHERE name = :name;

-- name: move
UPDATE {webhook} SET cursor = :to WHERE name = :name AND cursor = :expected;

-- name: secret
SELECT secret FROM {webhook} WHERE name = :name;
