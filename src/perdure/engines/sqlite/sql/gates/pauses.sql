-- name: pause
INSERT INTO {pause} (id, queue, kind, args, until, why, actor, at)
VALUES (:id, :queue, :kind, :args, :until, :why, :actor, :at)
ON CONFLICT DO NOTHING;

-- name: pauses
SELECT id, queue, kind, args, until, why, actor, at FROM {pause} ORDER BY at, id;

-- name: forget
DELETE FROM {pause} WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- name: unpaused
-- Jobs whose note names a pause that is over, in the order of their ids: parked by a worker that did not know that yet.
SELECT
    CAST(json_group_array(json_array(job_id, queue, unique_key, unique_states, unique_dead_for)) AS BLOB)
FROM (
    SELECT parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    FROM {parked} AS parked CROSS JOIN {job} AS job ON job.id = parked.job_id
    WHERE
        parked.reason = {REASON_ON_HOLD}
        AND NOT EXISTS (
            SELECT 1 FROM {pause} AS pause
            WHERE
                substr(parked.note || ' ', 1, length({PAUSE_NOTE} || pause.id) + 1)
                IN ({PAUSE_NOTE} || pause.id || ' ', {PAUSE_NOTE} || pause.id || ':', {PAUSE_NOTE} || pause.id || ',')
        )
    ORDER BY parked.job_id
    LIMIT :limit
);
