-- name: now
SELECT coalesce(%(now)s::timestamptz, clock_timestamp());

-- name: attempts
SELECT job_id::text, token, number, reason, worker, started_at, finished_at, error_type, message, traceback, next_at
FROM {attempt} WHERE job_id = %(id)s::uuid ORDER BY token;

-- name: costs
-- An estimate counts while the job runs.
SELECT name, coalesce(sum(amount) FILTER (WHERE NOT is_estimate), 0), sum(amount) FILTER (WHERE is_estimate)
FROM {spend} WHERE job_id = %(id)s::uuid
AND (NOT is_estimate OR EXISTS (SELECT FROM {lease} WHERE job_id = %(id)s::uuid))
GROUP BY name ORDER BY name;

-- name: gate_records
-- What the job carries to its next run, then the records of its attempts that are over.
SELECT j.gates, coalesce(l.claimed_at, f.started_at, f.finished_at), false
FROM {job} j
LEFT JOIN {lease} l ON l.job_id = j.id
LEFT JOIN {finished} f ON f.job_id = j.id
WHERE j.id = %(id)s::uuid AND j.gates IS NOT NULL
UNION ALL
SELECT gates, started_at, true FROM {attempt} WHERE job_id = %(id)s::uuid AND gates IS NOT NULL
UNION ALL
SELECT gates, started_at, true FROM {finished} WHERE job_id = %(id)s::uuid AND gates IS NOT NULL;

-- name: key_holder
SELECT job_id::text FROM {unique_hold}
WHERE key = sha256(convert_to(%(key)s::text, 'UTF8'))
  AND (expires_at IS NULL OR expires_at > coalesce(%(now)s::timestamptz, clock_timestamp()));

-- name: view_ready
-- One select for each place a job can stand in; the columns are those of JobView, in its order.
SELECT j.id::text AS id, j.kind, j.queue, j.priority, 'ready' AS state, coalesce(p.reason, {REASON_ENQUEUED}) AS reason,
       j.args, j.tags, j.meta, j.created_at, NULL::timestamptz AS due_at, p.since, NULL::timestamptz AS started_at,
       NULL::timestamptz AS finished_at, p.failures, p.crashes,
       nullif(coalesce(e.attempt_limit, j.max_attempts), 0) AS max_attempts, NULL::text AS worker,
       NULL::timestamptz AS cancel_requested_at, NULL::text AS result, NULL::text AS warnings, j.unique_key,
       e.said AS last_error, j.cursor, j.parent_id::text AS parent, NULL::text AS awaits, j.fair_key,
       NULL::text[] AS also_awaits, j.mark, NULL::text AS cancelled_by,
       j.settings, j.ref,
       (SELECT k.words ->> 'ready' FROM {kind} k WHERE k.name = j.kind) AS word, e.fingerprint
FROM {ready} p

-- name: view_lease
SELECT j.id::text AS id, j.kind, j.queue, j.priority, 'running' AS state, 'claimed' AS reason,
       j.args, j.tags, j.meta, j.created_at, NULL::timestamptz AS due_at, p.since, p.claimed_at AS started_at,
       NULL::timestamptz AS finished_at, p.failures, p.crashes,
       nullif(coalesce(e.attempt_limit, j.max_attempts), 0) AS max_attempts,
       coalesce((SELECT w.name FROM {worker} w WHERE w.id = p.worker_id), 'worker ' || p.worker_id) AS worker,
       p.cancel_at AS cancel_requested_at, NULL::text AS result, NULL::text AS warnings, j.unique_key,
       e.said AS last_error, j.cursor, j.parent_id::text AS parent, NULL::text AS awaits, j.fair_key,
       NULL::text[] AS also_awaits, j.mark, p.cancel_by AS cancelled_by,
       j.settings, j.ref,
       (SELECT k.words ->> 'running' FROM {kind} k WHERE k.name = j.kind) AS word, e.fingerprint
FROM {lease} p

-- name: view_parked
SELECT j.id::text AS id, j.kind, j.queue, j.priority, p.state, p.reason || coalesce(': ' || p.note, '') AS reason,
       j.args, j.tags, j.meta, j.created_at, p.due_at, p.since, NULL::timestamptz AS started_at,
       NULL::timestamptz AS finished_at, p.failures, p.crashes,
       nullif(coalesce(e.attempt_limit, j.max_attempts), 0) AS max_attempts, NULL::text AS worker,
       NULL::timestamptz AS cancel_requested_at, NULL::text AS result, NULL::text AS warnings, j.unique_key,
       e.said AS last_error, j.cursor, j.parent_id::text AS parent, p.awaits, j.fair_key, p.also_awaits, j.mark,
       NULL::text AS cancelled_by,
       j.settings, j.ref,
       (SELECT k.words ->> p.state FROM {kind} k WHERE k.name = j.kind) AS word, e.fingerprint
FROM {parked} p

-- name: view_finished
SELECT j.id::text AS id, j.kind, j.queue, j.priority, p.state, p.reason || coalesce(': ' || p.note, '') AS reason,
       j.args, j.tags, j.meta, j.created_at, NULL::timestamptz AS due_at, p.since, p.started_at,
       p.finished_at, p.failures, p.crashes,
       nullif(coalesce(e.attempt_limit, j.max_attempts), 0) AS max_attempts, p.worker,
       NULL::timestamptz AS cancel_requested_at, p.result, p.warnings, j.unique_key,
       e.said AS last_error, j.cursor, j.parent_id::text AS parent, NULL::text AS awaits, j.fair_key,
       NULL::text[] AS also_awaits, j.mark, p.cancelled_by,
       j.settings, j.ref,
       (SELECT k.words ->> p.state FROM {kind} k WHERE k.name = j.kind) AS word, e.fingerprint
FROM {finished} p

-- name: with_record
-- What every view adds: the record, and the last error of this life with the limit of the rule that judged it. A job
-- that has not failed in this life has neither error nor limit.
CROSS JOIN LATERAL (SELECT * FROM {job} WHERE id = p.job_id OFFSET 0) j
LEFT JOIN LATERAL (
    SELECT a.error_type, a.message, a.attempt_limit, a.fingerprint, left(a.error_type || ': ' || a.message, {ERROR_LIMIT_CHARACTERS}) AS said
    FROM {attempt} a WHERE a.job_id = p.job_id ORDER BY a.token DESC LIMIT 1
) e ON p.failures > 0 OR p.crashes > 0

-- name: walk_ready
SELECT p.job_id AS id FROM {ready} p WHERE p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: walk_lease
SELECT p.job_id AS id FROM {lease} p WHERE p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: walk_parked
SELECT p.job_id AS id FROM {parked} p WHERE p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: walk_finished
SELECT p.job_id AS id FROM {finished} p WHERE p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: walk_dead
SELECT p.job_id AS id FROM {finished} p WHERE p.state = 'dead' AND p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: walk_cancelled
SELECT p.job_id AS id FROM {finished} p WHERE p.state = 'cancelled' AND p.job_id < %(before)s::uuid
ORDER BY p.job_id DESC OFFSET %(step)s::bigint LIMIT 1

-- name: made_at
SELECT created_at FROM {job} WHERE id = %(id)s::uuid

-- name: page
LIMIT %(limit)s::bigint

-- name: page_behind
LIMIT %(limit)s::bigint - %(skipped)s::bigint OFFSET %(skipped)s::bigint

-- name: or_died
-- A dead job has an error of this life, although it may never have run.
OR p.state = 'dead'

-- name: of_ref
p.job_id = (SELECT r.id FROM {job} r WHERE r.ref = %(ref)s::text);

-- name: json_of
{json_of}

-- name: counts
-- Follows the indexes from one queue and state to the next, and reads at most this many entries of each.
WITH RECURSIVE ready_spot (queue) AS (
    (SELECT queue FROM {ready} ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT n.queue FROM ready_spot s CROSS JOIN LATERAL (
        SELECT r.queue FROM {ready} r WHERE r.queue > s.queue ORDER BY r.queue LIMIT 1
    ) n
), parked_spot (state, queue) AS (
    (SELECT state, queue FROM {parked} ORDER BY state, queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM parked_spot s CROSS JOIN LATERAL (
        SELECT p.state, p.queue FROM {parked} p WHERE (p.state, p.queue) > (s.state, s.queue)
        ORDER BY p.state, p.queue LIMIT 1
    ) n
), finished_spot (state, queue) AS (
    (SELECT state, queue FROM {finished} ORDER BY state, queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM finished_spot s CROSS JOIN LATERAL (
        SELECT f.state, f.queue FROM {finished} f WHERE (f.state, f.queue) > (s.state, s.queue)
        ORDER BY f.state, f.queue LIMIT 1
    ) n
)
SELECT s.queue, 'ready', (SELECT count(*) FROM (
    SELECT FROM {ready} r WHERE r.queue = s.queue LIMIT %(cap)s::bigint + 1) x)
FROM ready_spot s
UNION ALL
SELECT queue, 'running', count(*) FROM {lease} WHERE job_id >= '00000000-0000-0000-0000-000000000000' GROUP BY queue
UNION ALL
SELECT s.queue, s.state, (SELECT count(*) FROM (
    SELECT FROM {parked} p WHERE p.state = s.state AND p.queue = s.queue LIMIT %(cap)s::bigint + 1) x)
FROM parked_spot s
UNION ALL
SELECT s.queue, s.state, (SELECT count(*) FROM (
    SELECT FROM {finished} f WHERE f.state = s.state AND f.queue = s.queue LIMIT %(cap)s::bigint + 1) x)
FROM finished_spot s;
