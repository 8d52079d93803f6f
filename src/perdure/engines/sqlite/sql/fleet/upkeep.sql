-- name: next_due
-- Jobs in a state that only a newer release knows are left alone, here and below (G10). `+state` makes the planner use
-- the index of due times.
SELECT min(due_at) FROM {parked}
WHERE
    due_at IS NOT NULL AND +state IN ('scheduled', 'retrying', 'waiting', 'paused')
    AND job_id NOT IN (SELECT value FROM json_each(:aside));

-- name: overdue
SELECT CAST(json_group_array(json_array(job_id, queue, due_at)) AS BLOB)
FROM (
    SELECT job_id, queue, due_at FROM {parked}
    WHERE
        due_at IS NOT NULL AND due_at <= :before AND +state IN ('scheduled', 'retrying', 'waiting', 'paused')
        AND job_id NOT IN (SELECT value FROM json_each(:aside))
    ORDER BY due_at
    LIMIT :limit
);

-- name: due
SELECT
    CAST(json_group_array(json_array(job_id, queue, unique_key, unique_states, unique_dead_for)) AS BLOB)
FROM (
    SELECT parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    FROM {parked} AS parked CROSS JOIN {job} AS job ON job.id = parked.job_id
    WHERE
        parked.due_at IS NOT NULL AND parked.due_at <= :now
        AND +parked.state IN ('scheduled', 'retrying', 'waiting', 'paused')
        AND parked.job_id NOT IN (SELECT value FROM json_each(:aside))
        AND (:only IS NULL OR parked.job_id = :only)
    ORDER BY parked.due_at
    LIMIT :limit
);

-- name: ready_from_parked
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason, fair_key, due_at)
SELECT
    parked.queue, job.priority, job.turn, parked.job_id, parked.failures, parked.crashes,
    min(parked.since, :now), :reason, job.fair_key, CASE WHEN :reason = {REASON_DUE} THEN parked.due_at ELSE :now END
FROM json_each(:ids) AS row
CROSS JOIN {parked} AS parked ON parked.job_id = row.value
CROSS JOIN {job} AS job ON job.id = parked.job_id;

-- name: note_places
-- The place in line of each parked job: its old one, or else one by its time. Jobs with a fair key and without a place
-- get theirs in another way.
UPDATE {job} SET turn = place.turn
FROM (
    SELECT parked.job_id, parked.turn IS NULL AS is_new, coalesce(parked.turn, min(parked.due_at, :now), :now) AS turn
    FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value
) AS place
WHERE
    {job}.id = place.job_id AND {job}.turn <> place.turn
    AND ({job}.fair_key IS NULL OR NOT place.is_new);

-- name: placeless_fair_ones
SELECT CAST(json_group_array(json_array(job.id, job.queue, job.priority, job.fair_key)) AS BLOB)
FROM json_each(:ids) AS row
CROSS JOIN {parked} AS parked ON parked.job_id = row.value
CROSS JOIN {job} AS job ON job.id = row.value
WHERE parked.turn IS NULL AND job.fair_key IS NOT NULL;

-- name: note_turns
-- Jobs with a fair key get their place in another way.
UPDATE {job} SET turn = :turn + row.key FROM json_each(:ids) AS row
WHERE {job}.id = row.value AND {job}.fair_key IS NULL;

-- name: fair_ones
SELECT CAST(json_group_array(json_array(job.id, job.queue, job.priority, job.fair_key)) AS BLOB)
FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value
WHERE job.fair_key IS NOT NULL;

-- name: leave_waiters
-- The waits of these jobs for all events.
DELETE FROM {waiter}
WHERE
    job_id IN (
        SELECT parked.job_id
        FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value
        WHERE parked.awaits GLOB 'event:*' OR parked.also_awaits IS NOT NULL
    );

-- name: leave_parked
DELETE FROM {parked} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: hold_back
-- The job comes back by itself, so it waits for nothing else. It has its place from now on.
UPDATE {parked} SET
    state = 'paused', reason = {REASON_KEY_HELD}, due_at = :due_at, awaits = NULL, also_awaits = NULL,
    turn = coalesce(
        turn, CASE WHEN (SELECT fair_key FROM {job} WHERE id = job_id) IS NULL THEN min(coalesce(due_at, :now), :now) END
    )
WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: make_due
UPDATE {parked} SET due_at = :now WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: is_key_awaited
SELECT EXISTS (SELECT 1 FROM {parked} WHERE reason = {REASON_KEY_HELD});

-- name: hasten
-- The first job that waits for each of these keys, if it is among the first of all jobs that wait for a key.
UPDATE {parked} SET due_at = :now
WHERE
    job_id IN (
        SELECT job_id
        FROM (
            SELECT
                parked.job_id,
                row_number() OVER (PARTITION BY job.unique_key ORDER BY parked.since, parked.job_id) AS place
            FROM (
                SELECT job_id, since FROM {parked} WHERE reason = {REASON_KEY_HELD}
                ORDER BY since, job_id
                LIMIT {WAITING_FOR_KEYS_LOOKED_AT}
            ) AS parked
            CROSS JOIN {job} AS job ON job.id = parked.job_id
            WHERE job.unique_key IN (SELECT value FROM json_each(:keys))
        )
        WHERE place = 1
    );

-- name: orphans
SELECT
    CAST(json_group_array(json_array(
        job_id, kind, args, failures, crashes, crash_limit, since,
        unique_key, unique_states, unique_dead_for, tags, meta, unknown_since, cursor, parent_id, is_parent,
        settings, ref, gates, token, queue, claimed_at, worker_id, worker, beat_at
    )) AS BLOB)
FROM (
    SELECT
        lease.job_id, lease.token, job.kind, lease.queue, job.args, lease.failures, lease.crashes, job.crash_limit,
        lease.since, lease.claimed_at, job.unique_key, job.unique_states, job.unique_dead_for, job.tags, job.meta,
        job.unknown_since, job.cursor, job.parent_id, job.is_parent, job.settings, job.ref, job.gates, lease.worker_id, worker.name AS worker,
        worker.beat_at
    FROM {lease} AS lease
    CROSS JOIN {job} AS job ON job.id = lease.job_id
    LEFT JOIN {worker} AS worker ON worker.id = lease.worker_id
    WHERE lease.job_id > :after AND (worker.id IS NULL OR worker.dead_at IS NOT NULL)
    ORDER BY lease.job_id
    LIMIT :limit
);

-- name: old
-- One queue and state at a time: the index gives the oldest first.
SELECT
    CAST(json_group_array(job_id) AS BLOB)
FROM (
    SELECT job_id FROM {finished}
    WHERE state = :state AND queue = :queue AND finished_at <= :before
    ORDER BY finished_at
    LIMIT :limit
);

-- name: old_with_kind
-- As above, from a place on, with their kinds.
SELECT place.job_id, place.finished_at, job.kind, place.kept_as
FROM {finished} AS place INDEXED BY {finished_standing} CROSS JOIN {job} AS job ON job.id = place.job_id
WHERE
    place.state = :state AND place.queue = :queue AND place.finished_at <= :before
    AND (place.finished_at, place.job_id) > (:after, :after_id)
ORDER BY place.finished_at, place.job_id
LIMIT :limit;

-- name: old_of_kind
-- Jobs of a kind with its own retention.
SELECT
    CAST(json_group_array(job_id) AS BLOB)
FROM (
    SELECT job_id FROM {finished} INDEXED BY {finished_kept}
    WHERE kept_as = :kind AND state = :state AND finished_at <= :before
    ORDER BY finished_at
    LIMIT :limit
);

-- name: note_kinds
UPDATE {finished} SET kept_as = row.value ->> 1 FROM json_each(:rows) AS row WHERE job_id = row.value ->> 0;

-- name: finished_queues
WITH RECURSIVE each_queue (queue) AS (
    SELECT min(queue) FROM {finished} WHERE state = :state
    UNION ALL
    SELECT (SELECT min(queue) FROM {finished} WHERE state = :state AND queue > each_queue.queue)
    FROM each_queue WHERE each_queue.queue IS NOT NULL
)
SELECT queue FROM each_queue WHERE queue IS NOT NULL;

-- name: ahead
-- Jobs that ended in the future, because the clock was set back.
SELECT
    CAST(json_group_array(job_id) AS BLOB)
FROM (
    SELECT job_id FROM {finished}
    WHERE state = :state AND queue = :queue AND finished_at > :ahead
    ORDER BY finished_at
    LIMIT :limit
);

-- name: redate_keys
-- The unique keys of dead jobs are held no longer than others.
UPDATE {unique_hold} SET
    expires_at = expires_at - (
        SELECT finished.finished_at - :now FROM {finished} AS finished WHERE finished.job_id = {unique_hold}.job_id
    )
WHERE
    key IN (SELECT job.unique_key FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value)
    AND job_id IN (SELECT value FROM json_each(:ids))
    AND expires_at IS NOT NULL;

-- name: redate_finished
-- Redate these jobs to now.
UPDATE {finished} SET started_at = started_at - (finished_at - :now), finished_at = :now
WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_attempts
DELETE FROM {attempt} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_steps
DELETE FROM {step} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_progress
DELETE FROM {progress} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_lines
DELETE FROM {line} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_waiters
DELETE FROM {waiter} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_joined
DELETE FROM {joined}
WHERE
    child_id IN (
        SELECT child.job_id FROM json_each(:ids) AS row CROSS JOIN {child} AS child ON child.parent_id = row.value
    );

-- name: forget_children
-- What a job knows of its children; what its own parent knows of it stays.
DELETE FROM {child} WHERE parent_id IN (SELECT value FROM json_each(:ids));

-- name: some_children
SELECT child.job_id
FROM json_each(:ids) AS row CROSS JOIN {child} AS child ON child.parent_id = row.value
LIMIT :limit;

-- name: forget_some_joined
DELETE FROM {joined} WHERE child_id IN (SELECT value FROM json_each(:children));

-- name: forget_some_children
DELETE FROM {child} WHERE job_id IN (SELECT value FROM json_each(:children));

-- name: forget_families
DELETE FROM {family} WHERE parent_id IN (SELECT value FROM json_each(:ids));

-- name: forget_plans
DELETE FROM {plan} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_keys
DELETE FROM {unique_hold}
WHERE
    key IN (SELECT job.unique_key FROM json_each(:ids) AS row CROSS JOIN {job} AS job ON job.id = row.value)
    AND job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_finished
DELETE FROM {finished} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: forget_jobs
DELETE FROM {job} WHERE id IN (SELECT value FROM json_each(:ids));

-- name: forget_revoked
DELETE FROM {revoked} WHERE worker_id IN (SELECT id FROM {worker} WHERE dead_at <= :before);

-- name: forget_workers
DELETE FROM {worker}
WHERE dead_at <= :before AND NOT EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.worker_id = {worker}.id);

-- name: last_return
SELECT max(due_at) FROM {parked}
WHERE queue = :queue AND state = 'retrying' AND reason = {REASON_CRASHED};

-- name: forget_fires
-- A backfilled time is kept as long as the others, so that a repeated backfill does not make its job twice.
DELETE FROM {fire}
WHERE
    (schedule, nominal_at) IN (
        SELECT schedule, nominal_at FROM {fire}
        WHERE nominal_at <= :before AND at <= :before
        ORDER BY nominal_at
        LIMIT :limit
    );

-- name: forget_hours
DELETE FROM {failure_count} WHERE hour < :before;

-- name: forget_groups
-- Groups without recent failures and without dead letters.
DELETE FROM {failure_group}
WHERE
    last_at < :before
    AND NOT EXISTS (
        SELECT 1 FROM {finished} AS place INDEXED BY {finished_fingerprint}
        WHERE place.state = 'dead' AND place.fingerprint = {failure_group}.fingerprint
    );

-- name: forget_bulks
DELETE FROM {bulk} WHERE created_at <= :before AND finished_at <= :before;
