-- name: register
INSERT INTO {worker} (id, name, host, pid, process_started, queues, concurrency, version, started_at, beat_at)
VALUES (:id, :name, :host, :pid, :process_started, :queues, :concurrency, :version, :now, :now);

-- name: beat
UPDATE {worker} SET beat_at = :now WHERE id = :worker_id AND dead_at IS NULL;

-- name: retire
UPDATE {worker} SET dead_at = :now, phase = 'closed' WHERE id = :worker_id AND dead_at IS NULL;

-- name: cancel_requests
SELECT job_id, token, cancel_why, 0 FROM {lease} WHERE worker_id = :worker_id AND cancel_at IS NOT NULL
UNION ALL
SELECT job_id, token, why, 1 FROM {revoked} WHERE worker_id = :worker_id;

-- name: forget_revoked
DELETE FROM {revoked}
WHERE
    worker_id = :worker_id
    AND (job_id, token) IN (SELECT row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row);

-- name: workers
SELECT
    worker.id, worker.name, worker.host, worker.pid, worker.process_started, worker.queues, worker.concurrency,
    worker.version, worker.started_at, worker.beat_at, worker.dead_at, COALESCE(held.jobs, 0),
    worker.phase, worker.quiet_at
FROM {worker} AS worker
LEFT JOIN (SELECT worker_id, count(*) AS jobs FROM {lease} GROUP BY worker_id) AS held ON held.worker_id = worker.id
ORDER BY worker.dead_at IS NOT NULL, worker.started_at, worker.id;

-- name: put_back_beats
-- A beat with a future time comes from before the clock was set back, and counts as received now.
UPDATE {worker} SET beat_at = :now WHERE dead_at IS NULL AND beat_at > :now;

-- name: bury_silent
UPDATE {worker} SET dead_at = :now WHERE dead_at IS NULL AND beat_at < :silent_since RETURNING id;

-- name: bury
UPDATE {worker} SET dead_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND dead_at IS NULL
RETURNING id;

-- name: dead_workers
SELECT id FROM {worker} WHERE dead_at IS NOT NULL;

-- name: report
UPDATE {worker} SET phase = :phase WHERE id = :worker_id;

-- name: wants_quiet
SELECT 1 FROM {worker} WHERE id = :worker_id AND quiet_at IS NOT NULL;
