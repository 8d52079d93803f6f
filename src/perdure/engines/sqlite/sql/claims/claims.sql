-- name: pick
-- The front of one queue with all that its workers need, and the last token given, as one row.
SELECT
    CAST(json_group_array(json_array(
        job_id, kind, args, failures, crashes, crash_limit, since,
        unique_key, unique_states, unique_dead_for, tags, meta, unknown_since, cursor, parent_id, is_parent,
        settings, ref, is_fresh, gates_passed, due_at, gates, priority, turn
    )) AS BLOB),
    (SELECT value FROM {counter} WHERE name = 'token')
FROM (
    SELECT
        ready.priority, ready.turn, ready.job_id, job.kind, job.args, ready.failures, ready.crashes, job.crash_limit,
        ready.since, job.unique_key, job.unique_states, job.unique_dead_for, job.tags, job.meta,
        job.unknown_since, job.cursor, job.parent_id, job.is_parent, job.settings, job.ref,
        ready.reason = {REASON_ENQUEUED} AS is_fresh, job.gates_passed, ready.due_at, job.gates
    FROM {ready} AS ready CROSS JOIN {job} AS job ON job.id = ready.job_id
    WHERE
        ready.queue = :queue
        AND EXISTS (SELECT 1 FROM {worker} WHERE id = :worker_id AND dead_at IS NULL)
    ORDER BY ready.priority, ready.turn, ready.job_id
    LIMIT :limit
);

-- name: spend_token
UPDATE {counter} SET value = :token WHERE name = 'token';

-- name: hold
-- The picked jobs are the front of the queue up to the last of them.
INSERT INTO {lease} (job_id, token, worker_id, queue, failures, crashes, since, claimed_at)
SELECT job_id, :token, :worker_id, queue, failures, crashes, since, :now
FROM {ready}
WHERE queue = :queue AND (priority, turn, job_id) <= (:priority, :turn, :job_id);

-- name: take_out
DELETE FROM {ready} WHERE queue = :queue AND (priority, turn, job_id) <= (:priority, :turn, :job_id);

-- name: pick_of_level
-- As above, for one priority.
SELECT
    CAST(json_group_array(json_array(
        job_id, kind, args, failures, crashes, crash_limit, since,
        unique_key, unique_states, unique_dead_for, tags, meta, unknown_since, cursor, parent_id, is_parent,
        settings, ref, is_fresh, gates_passed, due_at, gates, priority, turn
    )) AS BLOB),
    (SELECT value FROM {counter} WHERE name = 'token')
FROM (
    SELECT
        ready.priority, ready.turn, ready.job_id, job.kind, job.args, ready.failures, ready.crashes, job.crash_limit,
        ready.since, job.unique_key, job.unique_states, job.unique_dead_for, job.tags, job.meta,
        job.unknown_since, job.cursor, job.parent_id, job.is_parent, job.settings, job.ref,
        ready.reason = {REASON_ENQUEUED} AS is_fresh, job.gates_passed, ready.due_at, job.gates
    FROM {ready} AS ready CROSS JOIN {job} AS job ON job.id = ready.job_id
    WHERE
        ready.queue = :queue AND ready.priority = :priority
        AND EXISTS (SELECT 1 FROM {worker} WHERE id = :worker_id AND dead_at IS NULL)
    ORDER BY ready.turn, ready.job_id
    LIMIT :limit
);

-- name: hold_of_level
INSERT INTO {lease} (job_id, token, worker_id, queue, failures, crashes, since, claimed_at)
SELECT job_id, :token, :worker_id, queue, failures, crashes, since, :now
FROM {ready}
WHERE queue = :queue AND priority = :priority AND (turn, job_id) <= (:turn, :job_id);

-- name: take_out_of_level
DELETE FROM {ready} WHERE queue = :queue AND priority = :priority AND (turn, job_id) <= (:turn, :job_id);

-- name: fronts
SELECT since FROM {ready} WHERE queue = :queue AND priority = :priority ORDER BY turn, job_id LIMIT :depth;

-- name: leases
SELECT CAST(json_group_array(json_array(job_id, token)) AS BLOB) FROM {lease} WHERE worker_id = :worker_id;

-- name: claims_held
SELECT
    CAST(json_group_array(json_array(
        lease.job_id, job.kind, job.args, lease.failures, lease.crashes, job.crash_limit, lease.since,
        job.unique_key, job.unique_states, job.unique_dead_for, job.tags, job.meta, job.unknown_since, job.cursor,
        job.parent_id, job.is_parent, job.settings, job.ref, 0, job.gates_passed, NULL, job.gates,
        lease.token, lease.queue, lease.claimed_at
    )) AS BLOB)
FROM json_each(:ids) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value
CROSS JOIN {job} AS job ON job.id = lease.job_id
WHERE lease.worker_id = :worker_id;

-- name: checkpoint
-- A claim that was lost matches no lease, and nothing is written for it.
UPDATE {job} SET cursor = :cursor
WHERE id = :job_id AND EXISTS (SELECT 1 FROM {lease} WHERE job_id = :job_id AND token = :token);
