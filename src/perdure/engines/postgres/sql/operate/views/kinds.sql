-- name: kinds
SELECT name, words::text, keep, limits FROM {kind} ORDER BY name;

-- name: declare
INSERT INTO {kind} (name, words, keep, limits, changed_at)
VALUES (
    %(name)s::text, %(words)s::text::jsonb, %(keep)s::text, %(limits)s::text, coalesce(%(now)s::timestamptz, now())
)
ON CONFLICT (name) DO UPDATE
SET words = excluded.words, keep = excluded.keep, limits = excluded.limits, changed_at = excluded.changed_at;

-- name: forget
DELETE FROM {kind} WHERE name = %(name)s::text;
