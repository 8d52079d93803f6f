-- name: register
INSERT INTO {worker} (id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at)
OVERRIDING SYSTEM VALUE
SELECT %(id)s::bigint, %(name)s::text, %(host)s::text, %(pid)s::bigint, %(process_started)s::bigint, %(queues)s::text[],
       %(concurrency)s::int, %(version)s::text, now, now
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) t
RETURNING id;

-- name: beat
-- The time is read once the row is locked.
UPDATE {worker} SET beat_at = coalesce(%(now)s::timestamptz, clock_timestamp())
WHERE id = %(worker)s::bigint AND dead_at IS NULL
RETURNING id;

-- name: retire
UPDATE {worker} SET dead_at = coalesce(%(now)s::timestamptz, now()), phase = 'closed'
WHERE id = %(worker)s::bigint AND dead_at IS NULL;

-- name: cancel_requests
-- Jobs whose cancellation was requested, and jobs taken from the worker; the latter are returned once.
WITH taken AS (
    DELETE FROM {revoked} WHERE worker_id = %(worker)s::bigint RETURNING job_id, token, why, at
)
SELECT r.job_id::text, r.token, r.why
FROM (
    SELECT job_id, token, cancel_why AS why, cancel_at AS at FROM {lease}
    WHERE worker_id = %(worker)s::bigint AND cancel_at IS NOT NULL
    UNION ALL
    SELECT job_id, token, why, at FROM taken
) r
ORDER BY r.at, r.job_id;

-- name: report
UPDATE {worker} SET phase = %(phase)s::text WHERE id = %(worker)s::bigint;

-- name: wants_quiet
SELECT quiet_at IS NOT NULL FROM {worker} WHERE id = %(worker)s::bigint;

-- name: workers
-- Leases are counted for all workers at once, because `lease` has no index by worker. The condition holds for every id:
-- it makes the planner use the key, because the table keeps the space of all jobs that ran between two vacuums.
WITH held AS MATERIALIZED (
    SELECT worker_id, count(*) AS running FROM {lease} WHERE job_id >= '00000000-0000-0000-0000-000000000000' GROUP BY worker_id
)
SELECT w.id, w.name, w.host, w.pid, w.process_started, w.queues, w.concurrency, w.version, w.started_at, w.beat_at,
       w.dead_at, w.phase, w.quiet_at, coalesce(h.running, 0)
FROM {worker} w LEFT JOIN held h ON h.worker_id = w.id
ORDER BY w.dead_at IS NOT NULL, w.started_at, w.id;

-- name: bury_silent
-- A beat with a future time comes from before the clock was set back, and counts as received now.
WITH ahead AS (
    UPDATE {worker} SET beat_at = coalesce(%(now)s::timestamptz, now())
    WHERE dead_at IS NULL AND beat_at > coalesce(%(now)s::timestamptz, now())
)
UPDATE {worker} w SET dead_at = coalesce(%(now)s::timestamptz, now())
WHERE dead_at IS NULL AND beat_at < coalesce(%(now)s::timestamptz, now()) - %(lease)s::interval
RETURNING id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at, dead_at, phase, quiet_at,
          (SELECT count(*) FROM {lease} l WHERE l.worker_id = w.id);

-- name: living_on_host
SELECT id, host, pid, process_started FROM {worker} WHERE dead_at IS NULL AND host = %(host)s::text ORDER BY id;

-- name: bury
UPDATE {worker} w SET dead_at = coalesce(%(now)s::timestamptz, now())
WHERE dead_at IS NULL AND id = ANY (%(workers)s::bigint[])
RETURNING id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at, dead_at, phase, quiet_at,
          (SELECT count(*) FROM {lease} l WHERE l.worker_id = w.id);

-- name: dead_workers
SELECT id FROM {worker} WHERE dead_at IS NOT NULL;
