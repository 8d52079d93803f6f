-- name: save_lines
-- Only for jobs whose claim is held. The oldest lines make room for new ones.
WITH mine AS MATERIALIZED (
    SELECT i.*
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::bigint[], %(places)s::int[], %(ats)s::timestamptz[], %(levels)s::text[],
        %(texts)s::text[]
    ) AS i (id, token, place, at, level, text)
    JOIN {lease} l ON l.job_id = i.id AND l.token = i.token
    FOR KEY SHARE OF l
), added AS (
    INSERT INTO {line} (job_id, number, at, level, text)
    SELECT id, coalesce((SELECT max(k.number) FROM {line} k WHERE k.job_id = id), 0) + place, at, level, text FROM mine
    RETURNING job_id, number
)
DELETE FROM {line} o
USING (SELECT job_id, max(number) AS newest FROM added GROUP BY job_id) n
WHERE o.job_id = n.job_id AND o.number <= n.newest - %(keep)s::int;

-- name: lines
SELECT number, at, level, text FROM {line}
WHERE job_id = %(id)s::uuid AND number > %(after)s::int ORDER BY number DESC LIMIT %(limit)s::int;
