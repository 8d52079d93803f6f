-- name: spots
-- Every state and queue with jobs, found by skipping along the indexes.
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
SELECT r.job_id, 'ready' AS state, r.queue, r.failures, r.crashes, NULL::text AS result FROM {ready} r
WHERE r.queue = s.queue LIMIT %(cap)s::bigint + 1

-- name: look_in_lease
-- All running jobs of any queue: no more than the fleet runs at once.
SELECT l.job_id, 'running' AS state, l.queue, l.failures, l.crashes, NULL::text AS result FROM {lease} l
WHERE l.job_id >= '00000000-0000-0000-0000-000000000000' AND (s.queue IS NULL OR l.queue = s.queue)

-- name: look_in_parked
SELECT k.job_id, k.state, k.queue, k.failures, k.crashes, NULL::text AS result FROM {parked} k
WHERE k.state = s.state AND k.queue = s.queue LIMIT %(cap)s::bigint + 1

-- name: look_in_finished
-- The last of the jobs that finished in the requested time.
SELECT f.job_id, f.state, f.queue, f.failures, f.crashes, f.result, f.fingerprint FROM {finished} f
WHERE f.state = s.state AND f.queue = s.queue
  AND f.finished_at > coalesce(%(finished_after)s::timestamptz, '-infinity')
  AND f.finished_at < coalesce(%(finished_before)s::timestamptz, 'infinity')
ORDER BY f.finished_at DESC LIMIT %(cap)s::bigint + 1

-- name: with_job
CROSS JOIN LATERAL (SELECT * FROM {job} WHERE id = p.job_id OFFSET 0) j

-- name: with_kind
-- The kind only. A fingerprint belongs to one kind, so the kind of a dead letter is known without reading its job.
LEFT JOIN LATERAL (SELECT kind FROM {failure_group} WHERE fingerprint = p.fingerprint OFFSET 0) g ON true
CROSS JOIN LATERAL (SELECT coalesce(g.kind, (SELECT r.kind FROM {job} r WHERE r.id = p.job_id)) AS kind) j

-- name: with_error
LEFT JOIN LATERAL (
    SELECT a.error_type, a.message FROM {attempt} a WHERE a.job_id = p.job_id ORDER BY a.token DESC LIMIT 1
) e ON p.failures > 0 OR p.crashes > 0 OR p.state = 'dead'

-- name: of_filter
WHERE s.state = ANY (%(states)s::text[]) AND (%(queue)s::text IS NULL OR s.queue = %(queue)s::text)

-- name: marked
-- Jobs with this mark, newest first. The mark is a range, because only the index of marks can then give this order: a
-- rare mark must not be searched for among all jobs.
SELECT j.id::text FROM {job} j
WHERE (j.mark, j.id) < (%(mark)s::text, %(before)s::uuid) AND j.mark >= %(mark)s::text
ORDER BY j.mark DESC, j.id DESC LIMIT %(limit)s::bigint;

-- name: failed_alike
-- Jobs with an attempt that failed with this fingerprint, newest first.
SELECT s.job_id::text FROM (
    SELECT DISTINCT a.job_id FROM {attempt} a
    WHERE a.fingerprint = %(fingerprint)s::text AND a.job_id < %(before)s::uuid
    ORDER BY a.job_id DESC LIMIT %(limit)s::bigint
) s ORDER BY s.job_id DESC;

-- name: died_alike
-- Dead letters with this fingerprint, newest first.
SELECT f.job_id::text FROM {finished} f
WHERE f.state = 'dead' AND f.fingerprint = %(fingerprint)s::text AND f.job_id < %(before)s::uuid
ORDER BY f.job_id DESC LIMIT %(limit)s::bigint;

-- name: died_of_kind
-- The newest dead letters that may be of this kind. A fingerprint belongs to one kind, and its group is kept as long as
-- a dead letter has it. Dead letters without a fingerprint may be of any kind.
SELECT c.job_id::text FROM (
    SELECT f.job_id FROM {failure_group} g CROSS JOIN LATERAL (
        SELECT f.job_id FROM {finished} f
        WHERE f.state = 'dead' AND f.fingerprint = g.fingerprint AND f.job_id < %(before)s::uuid
        ORDER BY f.job_id DESC LIMIT %(limit)s::bigint
    ) f WHERE g.kind = %(kind)s::text
    UNION ALL
    (
        SELECT f.job_id FROM {finished} f
        WHERE f.state = 'dead' AND f.fingerprint IS NULL AND f.job_id < %(before)s::uuid
        ORDER BY f.job_id DESC LIMIT %(limit)s::bigint
    )
) c ORDER BY c.job_id DESC LIMIT %(limit)s::bigint;

-- name: json_of
{json_of}
