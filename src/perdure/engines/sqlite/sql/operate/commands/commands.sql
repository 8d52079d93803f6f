-- name: gather_chosen
SELECT CAST(json_group_array(json_array(
    job_id, unique_key, unique_states, unique_dead_for, parent_id, is_parent
)) AS BLOB)
FROM

-- name: choose
SELECT place.job_id, job.unique_key, job.unique_states, job.unique_dead_for, job.parent_id, job.is_parent

-- name: waive_delay
-- A job without a place gets the place that it would have had without the delay.
UPDATE {parked} SET due_at = parked_at WHERE turn IS NULL AND job_id IN (SELECT value FROM json_each(:ids));

-- name: ready_from_finished
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason, fair_key, due_at)
SELECT job.queue, job.priority, job.turn, job.id, 0, 0, :now, {REASON_REQUEUED}, job.fair_key, :now
FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value;

-- name: leave_finished
DELETE FROM {finished} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: mark
UPDATE {job} SET mark = :mark WHERE id IN (SELECT value FROM json_each(:ids));

-- name: unmark
UPDATE {job} SET mark = NULL WHERE id IN (SELECT value FROM json_each(:ids)) AND mark IS NOT NULL;

-- name: ask_to_stop
UPDATE {lease} SET cancel_at = :now, cancel_why = :why, cancel_by = :by
WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: reschedule
-- For a job that never ran, limits over all attempts count from its new time.
UPDATE {parked} SET due_at = :due_at, since = CASE WHEN state = 'scheduled' THEN :due_at ELSE since END
WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: hurry_steps
-- Waits for a time end then at the latest; limits of waits for events and children stay.
UPDATE {step} SET due_at = :due_at
WHERE job_id IN (SELECT value FROM json_each(:ids))
  AND state = 'begun' AND kind IN ('call', 'sleep', 'poll') AND due_at > :due_at;

-- name: note_run_at
UPDATE {job} SET run_at = :due_at
WHERE id IN (
    SELECT parked.job_id
    FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value
    WHERE parked.state = 'scheduled'
);

-- name: quiet_already
SELECT id FROM {worker} WHERE id IN (SELECT value FROM json_each(:ids)) AND quiet_at IS NOT NULL;

-- name: make_quiet
-- A worker that was asked before keeps the time of the first request.
UPDATE {worker} SET quiet_at = COALESCE(quiet_at, :now)
WHERE id IN (SELECT value FROM json_each(:ids)) AND dead_at IS NULL
RETURNING id, name;

-- name: make_loud
UPDATE {worker} SET quiet_at = NULL
WHERE id IN (SELECT value FROM json_each(:ids)) AND dead_at IS NULL
RETURNING id, name;
