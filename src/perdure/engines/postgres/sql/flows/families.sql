-- name: hold
-- Locks the parent's lease: it cannot be taken away until the children are stored, but the parent's steps may be
-- written.
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
SELECT c.number, coalesce(j.job_id, c.job_id)::text, c.kind, c.fate, c.result, c.error, c.warnings,
       j.job_id IS NOT NULL
FROM {child} c LEFT JOIN {joined} j ON j.child_id = c.job_id
WHERE c.parent_id = %(id)s::uuid AND c.family = %(key)s::text AND c.number >= %(first)s::int
ORDER BY c.number LIMIT %(limit)s::int;

-- name: fates
SELECT c.number, coalesce(j.job_id, c.job_id)::text, c.kind, c.fate, j.job_id IS NOT NULL
FROM {child} c LEFT JOIN {joined} j ON j.child_id = c.job_id
WHERE c.parent_id = %(id)s::uuid AND c.family = %(key)s::text
ORDER BY c.number LIMIT %(limit)s::int;

-- name: take_turns
SELECT pg_advisory_xact_lock(hashtextextended('{joined}', 0));

-- name: waits_for
-- Which of these jobs is the parent, or waits for it: the parent's own parent, a job that joined the parent, and so on.
WITH RECURSIVE waiting (id) AS (
    SELECT %(id)s::uuid
    UNION
    SELECT n.id FROM waiting w CROSS JOIN LATERAL (
        SELECT parent_id AS id FROM {job} WHERE id = w.id AND parent_id IS NOT NULL
        UNION ALL SELECT parent_id FROM {joined} WHERE job_id = w.id AND is_open
    ) n
)
SELECT id::text FROM waiting WHERE id = ANY (%(ids)s::uuid[]) LIMIT 1;

-- name: join
INSERT INTO {joined} (child_id, job_id, parent_id, is_open)
SELECT i.child, i.job, %(id)s::uuid, true FROM unnest(%(children)s::uuid[], %(jobs)s::uuid[]) AS i (child, job);
