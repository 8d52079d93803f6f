-- name: hold
-- The parent's lease is kept from being taken away until the children are there; its steps may still be written.
SELECT token FROM {lease} WHERE job_id = %(id)s::uuid AND token = %(token)s::bigint FOR NO KEY UPDATE;

-- name: make
-- The children's own records are written by intake.
WITH known AS (
    UPDATE {job} SET is_parent = true, cursor = coalesce(%(cursor)s::text, cursor)
    WHERE id = %(id)s::uuid AND (NOT is_parent OR %(cursor)s::text IS NOT NULL)
), made AS (
    INSERT INTO {family} (parent_id, key, total, succeeded, failed, quorum, on_end, created_at, next_link)
    VALUES (%(id)s::uuid, %(key)s::text, %(total)s::int, 0, 0, %(quorum)s::int, %(on_end)s::text,
            coalesce(%(now)s::timestamptz, now()), %(next_link)s::int)
)
INSERT INTO {child} (parent_id, family, number, job_id, kind)
SELECT %(id)s::uuid, %(key)s::text, i.number - 1, i.id, i.kind
FROM unnest(%(children)s::uuid[], %(kinds)s::text[]) WITH ORDINALITY AS i (id, kind, number);

-- name: planned
SELECT document FROM {plan} WHERE job_id = %(id)s::uuid AND number = %(number)s::int;

-- name: family
SELECT key, total, succeeded, failed, quorum, on_end FROM {family}
WHERE parent_id = %(id)s::uuid AND key = %(key)s::text;

-- name: families
SELECT key, total, succeeded, failed, quorum, on_end FROM {family} WHERE parent_id = %(id)s::uuid ORDER BY turn;

-- name: children
SELECT number, job_id::text, kind, fate, result, error, warnings FROM {child}
WHERE parent_id = %(id)s::uuid AND family = %(key)s::text AND number >= %(first)s::int
ORDER BY number LIMIT %(limit)s::int;
