-- name: spots
-- Every state and queue in which jobs stand, along the indexes from one to the next.
WITH RECURSIVE ready_spot (state, queue) AS (
    (SELECT 'ready' AS state, r.queue FROM {ready} r ORDER BY r.queue LIMIT 1)
    UNION ALL
    SELECT 'ready', n.queue FROM ready_spot s CROSS JOIN LATERAL (
        SELECT r.queue FROM {ready} r WHERE r.queue > s.queue ORDER BY r.queue LIMIT 1
    ) n
), lease_spot (state, queue) AS (
    SELECT 'running', %(queue)s::text
), parked_spot (state, queue) AS (
    (SELECT p.state, p.queue FROM {parked} p ORDER BY p.state, p.queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM parked_spot s CROSS JOIN LATERAL (
        SELECT p.state, p.queue FROM {parked} p WHERE (p.state, p.queue) > (s.state, s.queue)
        ORDER BY p.state, p.queue LIMIT 1
    ) n
), finished_spot (state, queue) AS (
    (SELECT f.state, f.queue FROM {finished} f ORDER BY f.state, f.queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM finished_spot s CROSS JOIN LATERAL (
        SELECT f.state, f.queue FROM {finished} f WHERE (f.state, f.queue) > (s.state, s.queue)
        ORDER BY f.state, f.queue LIMIT 1
    ) n
)

-- name: look_in_ready
SELECT r.job_id, 'ready' AS state, r.queue, r.failures, r.crashes FROM {ready} r
WHERE r.queue = s.queue LIMIT %(cap)s::bigint + 1

-- name: look_in_lease
-- All: they are as many as a fleet runs at once, of whatever queue.
SELECT l.job_id, 'running' AS state, l.queue, l.failures, l.crashes FROM {lease} l
WHERE s.queue IS NULL OR l.queue = s.queue

-- name: look_in_parked
SELECT k.job_id, k.state, k.queue, k.failures, k.crashes FROM {parked} k
WHERE k.state = s.state AND k.queue = s.queue LIMIT %(cap)s::bigint + 1

-- name: look_in_finished
-- Of those that finished in the time asked for, the last.
SELECT f.job_id, f.state, f.queue, f.failures, f.crashes FROM {finished} f
WHERE f.state = s.state AND f.queue = s.queue
  AND f.finished_at > coalesce(%(finished_after)s::timestamptz, '-infinity')
  AND f.finished_at < coalesce(%(finished_before)s::timestamptz, 'infinity')
ORDER BY f.finished_at DESC LIMIT %(cap)s::bigint + 1

-- name: with_job
CROSS JOIN LATERAL (SELECT * FROM {job} WHERE id = p.job_id OFFSET 0) j

-- name: with_error
LEFT JOIN LATERAL (
    SELECT a.error_type, a.message FROM {attempt} a WHERE a.job_id = p.job_id ORDER BY a.token DESC LIMIT 1
) e ON p.failures > 0 OR p.crashes > 0 OR p.state = 'dead'

-- name: of_filter
WHERE s.state = ANY (%(states)s::text[]) AND (%(queue)s::text IS NULL OR s.queue = %(queue)s::text)

-- name: marked
-- Jobs with this mark, newest first. Asked for as a range, which only the index of marks can give in this order: one
-- that few jobs have must not be looked for among all of them.
SELECT j.id::text FROM {job} j
WHERE (j.mark, j.id) < (%(mark)s::text, %(before)s::uuid) AND j.mark >= %(mark)s::text
ORDER BY j.mark DESC, j.id DESC LIMIT %(limit)s::bigint;
