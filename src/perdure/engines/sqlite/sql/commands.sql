-- name: gather_chosen
SELECT CAST(json_group_array(json_array(job_id, queue, unique_key, unique_states, unique_dead_for)) AS BLOB)
FROM

-- name: choose
SELECT place.job_id, place.queue, job.unique_key, job.unique_states, job.unique_dead_for

-- name: ready_from_finished
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason)
SELECT job.queue, job.priority, :turn + row.key, job.id, 0, 0, :now, 'requeued'
FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value;

-- name: leave_finished
DELETE FROM {finished} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: cancel_ready
INSERT INTO {finished} (job_id, queue, state, reason, note, finished_at, failures, crashes, since)
SELECT place.job_id, place.queue, 'cancelled', 'cancelled', :why, :now, place.failures, place.crashes, place.since
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
INSERT INTO {finished} (job_id, queue, state, reason, note, finished_at, failures, crashes, since)
SELECT place.job_id, place.queue, 'cancelled', 'cancelled', :why, :now, place.failures, place.crashes, place.since
FROM json_each(:ids) AS row CROSS JOIN {parked} AS place ON place.job_id = row.value;

-- name: leave_parked
DELETE FROM {parked} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: ask_to_stop
UPDATE {lease} SET cancel_at = :now, cancel_why = :why WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: write_audit
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT :now, :actor, :action, row.value, :details FROM json_each(:ids) AS row;
