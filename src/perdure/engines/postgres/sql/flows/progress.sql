-- name: save_progress
-- Only for jobs whose claim is held.
WITH mine AS MATERIALIZED (
    SELECT i.*
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::bigint[], %(currents)s::float8[], %(totals)s::float8[], %(notes)s::text[],
        %(ats)s::timestamptz[]
    ) AS i (id, token, current, total, note, at)
    JOIN {lease} l ON l.job_id = i.id AND l.token = i.token
    FOR KEY SHARE OF l
)
INSERT INTO {progress} (job_id, current, total, note, at)
SELECT id, current, total, note, at FROM mine
ON CONFLICT (job_id) DO UPDATE
SET current = excluded.current, total = excluded.total, note = excluded.note, at = excluded.at;

-- name: progress
SELECT current, total, note, at FROM {progress} WHERE job_id = %(id)s::uuid;
