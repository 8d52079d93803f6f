-- name: gather
-- After a failed attempt, the limit is that of the rule that judged it.
SELECT CAST(json_group_array(json_array(
    id, kind, queue, priority, state, reason, args, tags, meta, created_at, due_at, since, started_at, finished_at,
    failures, crashes,
    CASE WHEN failures > 0 THEN NULLIF(COALESCE((
        SELECT attempt_limit FROM {attempt} WHERE job_id = id ORDER BY token DESC LIMIT 1
    ), max_attempts), 0) ELSE max_attempts END,
    worker, cancel_at, result, warnings, unique_key, last_error, cursor,
    parent_id, awaits, fair_key, also_awaits, mark, cancelled_by, settings, ref,
    (SELECT CASE WHEN json_valid(known.words) THEN known.words ->> state END FROM {kind} AS known WHERE known.name = kind),
    CASE WHEN last_error IS NOT NULL THEN (
        SELECT fingerprint FROM {attempt} WHERE job_id = id ORDER BY token DESC LIMIT 1
    ) END
)) AS BLOB)
FROM

-- name: ready
SELECT
    job.id, job.kind, job.queue, job.priority, 'ready' AS state, place.reason, job.args, job.tags, job.meta,
    job.created_at, NULL AS due_at, place.since, NULL AS started_at, NULL AS finished_at,
    place.failures, place.crashes, job.max_attempts, NULL AS worker,
    NULL AS cancel_at, NULL AS result, NULL AS warnings, job.unique_key,
    CASE WHEN place.failures + place.crashes > 0 THEN (
        SELECT substr(error_type || ': ' || message, 1, {ERROR_LIMIT_CHARACTERS}) FROM {attempt}
        WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
    ) END AS last_error,
    job.cursor, job.parent_id, NULL AS awaits, job.fair_key, NULL AS also_awaits, job.mark, NULL AS cancelled_by, job.settings, job.ref

-- name: lease
SELECT
    job.id, job.kind, job.queue, job.priority, 'running' AS state, 'claimed' AS reason, job.args, job.tags, job.meta,
    job.created_at, NULL AS due_at, place.since, place.claimed_at AS started_at, NULL AS finished_at,
    place.failures, place.crashes, job.max_attempts, (SELECT name FROM {worker} WHERE id = place.worker_id) AS worker,
    place.cancel_at, NULL AS result, NULL AS warnings, job.unique_key,
    CASE WHEN place.failures + place.crashes > 0 THEN (
        SELECT substr(error_type || ': ' || message, 1, {ERROR_LIMIT_CHARACTERS}) FROM {attempt}
        WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
    ) END AS last_error,
    job.cursor, job.parent_id, NULL AS awaits, job.fair_key, NULL AS also_awaits, job.mark,
    place.cancel_by AS cancelled_by, job.settings, job.ref

-- name: parked
SELECT
    job.id, job.kind, job.queue, job.priority, place.state,
    place.reason || COALESCE(': ' || place.note, '') AS reason, job.args, job.tags, job.meta, job.created_at, place.due_at, place.since, NULL AS started_at, NULL AS finished_at,
    place.failures, place.crashes, job.max_attempts, NULL AS worker,
    NULL AS cancel_at, NULL AS result, NULL AS warnings, job.unique_key,
    CASE WHEN place.failures + place.crashes > 0 THEN (
        SELECT substr(error_type || ': ' || message, 1, {ERROR_LIMIT_CHARACTERS}) FROM {attempt}
        WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
    ) END AS last_error,
    job.cursor, job.parent_id, place.awaits, job.fair_key, place.also_awaits, job.mark, NULL AS cancelled_by, job.settings, job.ref

-- name: finished
-- A job may die without a failure of its own: no worker had a handler for it. Its error is still shown.
SELECT
    job.id, job.kind, job.queue, job.priority, place.state,
    place.reason || COALESCE(': ' || place.note, '') AS reason, job.args, job.tags, job.meta, job.created_at, NULL AS due_at, place.since, place.started_at, place.finished_at,
    place.failures, place.crashes, job.max_attempts, place.worker,
    NULL AS cancel_at, place.result, place.warnings, job.unique_key,
    CASE WHEN place.failures + place.crashes > 0 OR place.state = 'dead' THEN (
        SELECT substr(error_type || ': ' || message, 1, {ERROR_LIMIT_CHARACTERS}) FROM {attempt}
        WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
    ) END AS last_error,
    job.cursor, job.parent_id, NULL AS awaits, job.fair_key, NULL AS also_awaits, job.mark,
    place.cancelled_by, job.settings, job.ref

-- name: newest_parked
SELECT place.job_id FROM {parked} AS place
WHERE
    place.state IN (SELECT value FROM json_each(:states)) AND place.job_id < :before AND place.job_id >= :floor
ORDER BY place.job_id DESC LIMIT :limit;

-- name: ready_among_newest
SELECT place.job_id
FROM (
    SELECT id, queue, priority, turn FROM {job} WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT :reach
) AS job
CROSS JOIN {ready} AS place ON
    place.queue = job.queue AND place.priority = job.priority AND place.turn = job.turn AND place.job_id = job.id
ORDER BY place.job_id DESC LIMIT :limit;

-- name: newest_ready
SELECT place.job_id FROM {ready} AS place
WHERE place.job_id < :before AND place.job_id >= :floor ORDER BY place.job_id DESC LIMIT :limit;

-- name: attempts
SELECT CAST(json_group_array(json_array(
    job_id, token, number, reason, worker, started_at, finished_at, error_type, message, traceback, next_at
)) AS BLOB)
FROM (SELECT * FROM {attempt} WHERE job_id = :job_id ORDER BY token);

-- name: costs
-- An estimate counts while the job runs.
SELECT name, TOTAL(amount) FILTER (WHERE NOT is_estimate), SUM(amount) FILTER (WHERE is_estimate)
FROM {spend}
WHERE job_id = :job_id AND (is_estimate = 0 OR EXISTS (SELECT 1 FROM {lease} WHERE job_id = :job_id))
GROUP BY name
ORDER BY name;

-- name: gate_records
-- What the job carries to its next run, then the records of its attempts that are over.
SELECT gates, COALESCE(
    (SELECT claimed_at FROM {lease} WHERE job_id = :job_id),
    (SELECT COALESCE(started_at, finished_at) FROM {finished} WHERE job_id = :job_id)
), 0
FROM {job} WHERE id = :job_id AND gates IS NOT NULL
UNION ALL
SELECT gates, started_at, 1 FROM {attempt} WHERE job_id = :job_id AND gates IS NOT NULL
UNION ALL
SELECT gates, started_at, 1 FROM {finished} WHERE job_id = :job_id AND gates IS NOT NULL;

-- name: key_holder
SELECT job_id FROM {unique_hold} WHERE key = :key AND (expires_at IS NULL OR expires_at > :now);

-- name: count_ready
WITH RECURSIVE each_queue (queue) AS (
    SELECT min(queue) FROM {ready}
    UNION ALL
    SELECT (SELECT min(queue) FROM {ready} WHERE queue > each_queue.queue)
    FROM each_queue WHERE each_queue.queue IS NOT NULL
)
SELECT
    queue, 'ready',
    (SELECT count(*) FROM (SELECT 1 FROM {ready} AS ready WHERE ready.queue = each_queue.queue LIMIT :cap + 1))
FROM each_queue WHERE queue IS NOT NULL;

-- name: is_long
-- Whether there are too many ready jobs to sort.
SELECT count(*) > :length FROM (SELECT 1 FROM {ready} LIMIT :length + 1);

-- name: are_many_parked
-- Whether there are too many parked jobs in these states to sort.
SELECT count(*) > :length FROM (
    SELECT 1 FROM {parked} AS place INDEXED BY {parked_standing}
    WHERE place.state IN (SELECT value FROM json_each(:states)) LIMIT :length + 1
);

-- name: count_lease
SELECT queue, 'running', count(*) FROM {lease} GROUP BY queue;

-- name: count_parked
-- One seek for each pair of state and queue, never a walk through all rows.
WITH RECURSIVE each_pair (state, queue) AS (
    SELECT min(state), (SELECT min(queue) FROM {parked} WHERE state = (SELECT min(state) FROM {parked}))
    FROM {parked}
    UNION ALL
    SELECT
        COALESCE(
            (SELECT state FROM {parked} WHERE state = each_pair.state AND queue > each_pair.queue LIMIT 1),
            (SELECT min(state) FROM {parked} WHERE state > each_pair.state)
        ),
        COALESCE(
            (SELECT min(queue) FROM {parked} WHERE state = each_pair.state AND queue > each_pair.queue),
            (SELECT min(queue) FROM {parked} WHERE state = (SELECT min(state) FROM {parked} WHERE state > each_pair.state))
        )
    FROM each_pair WHERE each_pair.state IS NOT NULL
)
SELECT
    queue, state,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM {parked} AS place
            WHERE place.state = each_pair.state AND place.queue = each_pair.queue LIMIT :cap + 1
        )
    )
FROM each_pair WHERE state IS NOT NULL;

-- name: count_finished
-- One seek for each pair of state and queue, never a walk through all rows.
WITH RECURSIVE each_pair (state, queue) AS (
    SELECT min(state), (SELECT min(queue) FROM {finished} WHERE state = (SELECT min(state) FROM {finished}))
    FROM {finished}
    UNION ALL
    SELECT
        COALESCE(
            (SELECT state FROM {finished} WHERE state = each_pair.state AND queue > each_pair.queue LIMIT 1),
            (SELECT min(state) FROM {finished} WHERE state > each_pair.state)
        ),
        COALESCE(
            (SELECT min(queue) FROM {finished} WHERE state = each_pair.state AND queue > each_pair.queue),
            (SELECT min(queue) FROM {finished} WHERE state = (SELECT min(state) FROM {finished} WHERE state > each_pair.state))
        )
    FROM each_pair WHERE each_pair.state IS NOT NULL
)
SELECT
    queue, state,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM {finished} AS place
            WHERE place.state = each_pair.state AND place.queue = each_pair.queue LIMIT :cap + 1
        )
    )
FROM each_pair WHERE state IS NOT NULL;
