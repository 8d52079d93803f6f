-- name: settle_children
-- An end is counted once. The record of an earlier end stays, because the parent may have seen it.
UPDATE {child} SET
    fate = row.value ->> 1, result = row.value ->> 2, error = COALESCE(row.value ->> 3, {child}.error),
    warnings = row.value ->> 4
FROM json_each(:rows) AS row
WHERE {child}.job_id = row.value ->> 0 AND {child}.fate IS NULL
RETURNING parent_id, family, fate;

-- name: revive_children
-- Failed children that are requeued are not final any more. A success is final.
UPDATE {child} SET fate = NULL
FROM json_each(:ids) AS row
WHERE {child}.job_id = row.value AND {child}.fate IN ('dead', 'cancelled')
RETURNING parent_id, family;

-- name: count_ends
UPDATE {family} SET succeeded = {family}.succeeded + (row.value ->> 2), failed = {family}.failed + (row.value ->> 3)
FROM json_each(:rows) AS row
WHERE {family}.parent_id = row.value ->> 0 AND {family}.key = row.value ->> 1
RETURNING parent_id, next_link, key, total, succeeded, failed, quorum, on_end;

-- name: waiting_parents
-- What is needed to make jobs ready that wait for one of these families; each job once.
SELECT
    CAST(json_group_array(json_array(
        parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    )) AS BLOB)
FROM json_each(:rows) AS row
CROSS JOIN {parked} AS parked ON parked.job_id = row.value ->> 0
CROSS JOIN {job} AS job ON job.id = parked.job_id
WHERE
    parked.state = 'waiting'
    AND (
        parked.awaits = 'family:' || (row.value ->> 1)
        OR 'family:' || (row.value ->> 1) IN (SELECT value FROM json_each(parked.also_awaits))
    );

-- name: active_children
-- The unfinished children of each parent, in the families that are cancelled with it, or in all of them: some, or all.
SELECT
    CAST(json_group_array(json_array(id, unique_key, unique_states, unique_dead_for, parent_id, is_parent)) AS BLOB)
FROM (
    SELECT job.id, job.unique_key, job.unique_states, job.unique_dead_for, job.parent_id, job.is_parent
    FROM json_each(:ids) AS row
    CROSS JOIN {family} AS family ON family.parent_id = row.value
    CROSS JOIN {child} AS child ON child.parent_id = family.parent_id AND child.family = family.key
    CROSS JOIN {job} AS job ON job.id = child.job_id
    WHERE
        (:all OR family.on_end = 'cancel')
        AND NOT EXISTS (SELECT 1 FROM {finished} AS finished WHERE finished.job_id = child.job_id)
    LIMIT :limit
);

-- name: ended_joined
-- All children that joined jobs that are now final or deleted, and how those jobs ended.
SELECT
    joined.child_id, COALESCE(finished.state, 'cancelled'), finished.result,
    CASE finished.state
        WHEN 'succeeded' THEN NULL
        WHEN 'dead' THEN COALESCE(
            (
                SELECT substr(attempt.error_type || ': ' || attempt.message, 1, {ERROR_LIMIT_CHARACTERS})
                FROM {attempt} AS attempt WHERE attempt.job_id = joined.job_id ORDER BY attempt.token DESC LIMIT 1
            ),
            finished.note, finished.reason
        )
        ELSE COALESCE(finished.note, finished.reason, {JOB_DELETED})
    END,
    finished.warnings
FROM {joined} AS joined
LEFT JOIN {finished} AS finished ON finished.job_id = joined.job_id
WHERE
    joined.is_open = 1
    AND (
        finished.job_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM {job} AS job WHERE job.id = joined.job_id)
    )
LIMIT :limit;

-- name: ended_joined_of
-- As above, for the children that joined some jobs.
SELECT
    joined.child_id, COALESCE(finished.state, 'cancelled'), finished.result,
    CASE finished.state
        WHEN 'succeeded' THEN NULL
        WHEN 'dead' THEN COALESCE(
            (
                SELECT substr(attempt.error_type || ': ' || attempt.message, 1, {ERROR_LIMIT_CHARACTERS})
                FROM {attempt} AS attempt WHERE attempt.job_id = joined.job_id ORDER BY attempt.token DESC LIMIT 1
            ),
            finished.note, finished.reason
        )
        ELSE COALESCE(finished.note, finished.reason, {JOB_DELETED})
    END,
    finished.warnings
FROM json_each(:ids) AS row
CROSS JOIN {joined} AS joined ON joined.job_id = row.value
LEFT JOIN {finished} AS finished ON finished.job_id = joined.job_id
WHERE
    joined.is_open = 1
    AND (
        finished.job_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM {job} AS job WHERE job.id = joined.job_id)
    );

-- name: close_joined
UPDATE {joined} SET is_open = 0 WHERE child_id IN (SELECT value FROM json_each(:ids));

-- name: reopen_joined
UPDATE {joined} SET is_open = 1 WHERE job_id IN (SELECT value FROM json_each(:ids)) RETURNING child_id;
