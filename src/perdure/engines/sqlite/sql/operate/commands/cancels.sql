-- name: cancel_ready
INSERT INTO {finished} (job_id, queue, state, reason, note, finished_at, failures, crashes, since, cancelled_by, kept_as)
SELECT
    place.job_id, place.queue, 'cancelled', {REASON_CANCELLED}, :why, :now, place.failures, place.crashes, place.since, :by,
    (
        SELECT kind.name FROM {job} AS record CROSS JOIN {kind} AS kind ON kind.name = record.kind
        WHERE record.id = place.job_id AND kind.keep IS NOT NULL
    )
FROM json_each(:ids) AS row
CROSS JOIN {job} AS job ON job.id = row.value
CROSS JOIN {ready} AS place
    ON place.queue = job.queue AND place.priority = job.priority AND place.turn = job.turn AND place.job_id = job.id;

-- name: leave_ready
DELETE FROM {ready}
WHERE
    (queue, priority, turn, job_id) IN (
        SELECT job.queue, job.priority, job.turn, job.id
        FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value
    );

-- name: cancel_parked
INSERT INTO {finished} (job_id, queue, state, reason, note, finished_at, failures, crashes, since, cancelled_by, kept_as)
SELECT
    place.job_id, place.queue, 'cancelled', {REASON_CANCELLED}, :why, :now, place.failures, place.crashes, place.since, :by,
    (
        SELECT kind.name FROM {job} AS record CROSS JOIN {kind} AS kind ON kind.name = record.kind
        WHERE record.id = place.job_id AND kind.keep IS NOT NULL
    )
FROM json_each(:ids) AS row CROSS JOIN {parked} AS place ON place.job_id = row.value;

-- name: leave_parked
DELETE FROM {parked} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: leave_waiters
-- The waits of cancelled jobs, for any event.
DELETE FROM {waiter} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: cancel_lease
INSERT INTO {finished} (
    job_id, queue, state, reason, note, started_at, finished_at, worker, failures, crashes, since, cancelled_by,
    kept_as
)
SELECT
    place.job_id, place.queue, 'cancelled', {REASON_CANCELLED}, :why, place.claimed_at, :now,
    (SELECT name FROM {worker} WHERE id = place.worker_id), place.failures, place.crashes, place.since, :by,
    (
        SELECT kind.name FROM {job} AS record CROSS JOIN {kind} AS kind ON kind.name = record.kind
        WHERE record.id = place.job_id AND kind.keep IS NOT NULL
    )
FROM json_each(:ids) AS row CROSS JOIN {lease} AS place ON place.job_id = row.value;

-- name: revoke
-- Notify the worker that runs the job, if it is still there.
INSERT INTO {revoked} (worker_id, job_id, token, why, at)
SELECT place.worker_id, place.job_id, place.token, :why, :now
FROM json_each(:ids) AS row
CROSS JOIN {lease} AS place ON place.job_id = row.value
CROSS JOIN {worker} AS worker ON worker.id = place.worker_id
WHERE worker.dead_at IS NULL
ON CONFLICT DO NOTHING;

-- name: leave_lease
DELETE FROM {lease} WHERE job_id IN (SELECT value FROM json_each(:ids));
