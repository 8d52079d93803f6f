-- name: all
SELECT name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at FROM {webhook} ORDER BY name;

-- name: one
SELECT name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at FROM {webhook}
WHERE name = %(name)s::text FOR UPDATE;

-- name: save
-- A secret that is not given stays as it is.
INSERT INTO {webhook} AS w (name, definition, secret, cursor, created_at, changed_at)
VALUES (%(name)s::text, %(definition)s::text, %(secret)s::text, %(cursor)s::text,
        coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET
    definition = excluded.definition, secret = coalesce(excluded.secret, w.secret), changed_at = excluded.changed_at
RETURNING name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at;

-- name: pause
UPDATE {webhook}
SET paused_at = CASE WHEN %(paused)s::boolean THEN coalesce(paused_at, %(now)s::timestamptz, now()) END,
    changed_at = coalesce(%(now)s::timestamptz, now())
WHERE name = %(name)s::text
RETURNING name, definition, secret IS NOT NULL, cursor, paused_at, created_at, changed_at;

-- name: delete
DELETE FROM {webhook} WHERE name = %(name)s::text;

-- name: move
UPDATE {webhook} SET cursor = %(to)s::text WHERE name = %(name)s::text AND cursor = %(expected)s::text RETURNING name;

-- name: secret
SELECT secret FROM {webhook} WHERE name = %(name)s::text;
