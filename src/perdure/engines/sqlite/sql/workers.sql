-- name: register
INSERT INTO {worker} (name, host, pid, process_started, queues, concurrency, version, started_at, beat_at)
VALUES (:name, :host, :pid, :process_started, :queues, :concurrency, :version, :now, :now)
RETURNING id;

-- name: beat
UPDATE {worker} SET beat_at = :now WHERE id = :worker_id AND dead_at IS NULL;

-- name: retire
UPDATE {worker} SET dead_at = :now WHERE id = :worker_id AND dead_at IS NULL;

-- name: cancel_requests
SELECT job_id, token, cancel_why FROM {lease} WHERE worker_id = :worker_id AND cancel_at IS NOT NULL;

-- name: workers
SELECT
    worker.id, worker.name, worker.host, worker.pid, worker.process_started, worker.queues, worker.concurrency,
    worker.version, worker.started_at, worker.beat_at, worker.dead_at, COALESCE(held.jobs, 0)
FROM {worker} AS worker
LEFT JOIN (SELECT worker_id, count(*) AS jobs FROM {lease} GROUP BY worker_id) AS held ON held.worker_id = worker.id
ORDER BY worker.dead_at IS NOT NULL, worker.id;

-- name: bury_silent
UPDATE {worker} SET dead_at = :now WHERE dead_at IS NULL AND beat_at < :silent_since RETURNING id;

-- name: bury
UPDATE {worker} SET dead_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND dead_at IS NULL
RETURNING id;
