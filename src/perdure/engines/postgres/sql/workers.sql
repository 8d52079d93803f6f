-- name: register
INSERT INTO {worker} (name, host, pid, process_started, queues, concurrency, version, started_at, beat_at)
SELECT %(name)s::text, %(host)s::text, %(pid)s::bigint, %(process_started)s::bigint, %(queues)s::text[],
       %(concurrency)s::int, %(version)s::text, now, now
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) t
RETURNING id;

-- name: beat
-- The time is read after the row's lock has been waited for.
UPDATE {worker} SET beat_at = coalesce(%(now)s::timestamptz, clock_timestamp())
WHERE id = %(worker)s::bigint AND dead_at IS NULL
RETURNING id;

-- name: retire
UPDATE {worker} SET dead_at = coalesce(%(now)s::timestamptz, now())
WHERE id = %(worker)s::bigint AND dead_at IS NULL;

-- name: cancel_requests
SELECT job_id::text, token, cancel_why FROM {lease} WHERE worker_id = %(worker)s::bigint AND cancel_at IS NOT NULL
ORDER BY cancel_at, job_id;

-- name: workers
SELECT id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at, dead_at,
       (SELECT count(*) FROM {lease} l WHERE l.worker_id = w.id)
FROM {worker} w
ORDER BY dead_at IS NOT NULL, id;

-- name: bury_silent
UPDATE {worker} w SET dead_at = coalesce(%(now)s::timestamptz, now())
WHERE dead_at IS NULL AND beat_at < coalesce(%(now)s::timestamptz, now()) - %(lease)s::interval
RETURNING id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at, dead_at,
          (SELECT count(*) FROM {lease} l WHERE l.worker_id = w.id);

-- name: living_on_host
SELECT id, host, pid, process_started FROM {worker} WHERE dead_at IS NULL AND host = %(host)s::text ORDER BY id;

-- name: bury
UPDATE {worker} w SET dead_at = coalesce(%(now)s::timestamptz, now())
WHERE dead_at IS NULL AND id = ANY (%(workers)s::bigint[])
RETURNING id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at, dead_at,
          (SELECT count(*) FROM {lease} l WHERE l.worker_id = w.id);
