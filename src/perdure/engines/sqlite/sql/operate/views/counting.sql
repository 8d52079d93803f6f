-- name: queues_of_ready
WITH RECURSIVE each_queue (queue) AS (
    SELECT min(place.queue) FROM {ready} AS place
    UNION ALL
    SELECT (SELECT min(place.queue) FROM {ready} AS place WHERE place.queue > each_queue.queue)
    FROM each_queue WHERE each_queue.queue IS NOT NULL
)
SELECT each_queue.queue FROM each_queue WHERE each_queue.queue IS NOT NULL;

-- name: queues_of_parked
WITH RECURSIVE each_queue (queue) AS (
    SELECT min(place.queue) FROM {parked} AS place WHERE place.state = :state
    UNION ALL
    SELECT (SELECT min(place.queue) FROM {parked} AS place WHERE place.state = :state AND place.queue > each_queue.queue)
    FROM each_queue WHERE each_queue.queue IS NOT NULL
)
SELECT each_queue.queue FROM each_queue WHERE each_queue.queue IS NOT NULL;

-- name: queues_of_finished
WITH RECURSIVE each_queue (queue) AS (
    SELECT min(place.queue) FROM {finished} AS place WHERE place.state = :state
    UNION ALL
    SELECT (SELECT min(place.queue) FROM {finished} AS place WHERE place.state = :state AND place.queue > each_queue.queue)
    FROM each_queue WHERE each_queue.queue IS NOT NULL
)
SELECT each_queue.queue FROM each_queue WHERE each_queue.queue IS NOT NULL;

-- name: spot_in_ready
FROM {ready} AS place

-- name: spot_in_lease
FROM {lease} AS place

-- name: spot_in_parked
FROM {parked} AS place INDEXED BY {parked_standing}

-- name: spot_in_finished
FROM {finished} AS place INDEXED BY {finished_standing}

-- name: spot_in_dead_of_groups
FROM {finished} AS place INDEXED BY {finished_fingerprint}

-- name: spot_in_dead_unprinted
FROM {finished} AS place INDEXED BY {finished_unprinted}

-- name: with_job
CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: of_queue
place.queue = :spot_queue

-- name: of_state
place.state = :spot_state

-- name: dead_of_groups
place.state = 'dead' AND place.fingerprint IN (
    SELECT known.fingerprint FROM {failure_group} AS known WHERE known.kind = :kind
)

-- name: dead_unprinted
place.state = 'dead' AND place.fingerprint IS NULL

-- name: finished_after
place.finished_at > :finished_after

-- name: finished_before
place.finished_at < :finished_before

-- name: some_of_ready
LIMIT :cap + 1

-- name: some_of_parked
LIMIT :cap + 1

-- name: some_of_finished
-- The last ones to finish.
ORDER BY place.finished_at DESC LIMIT :cap + 1

-- name: some_of_dead
LIMIT :cap + 1

-- name: some_of_lease
-- All running jobs of any queue: no more than the fleet runs at once.
LIMIT -1

-- name: marked
-- Jobs with this mark, newest first.
SELECT job.id FROM {job} AS job INDEXED BY {job_mark}
WHERE job.mark = :mark AND job.id < :before ORDER BY job.id DESC LIMIT :limit;

-- name: failed_alike
-- Jobs with an attempt that failed with this fingerprint, newest first.
SELECT DISTINCT attempt.job_id FROM {attempt} AS attempt INDEXED BY {attempt_fingerprint}
WHERE attempt.fingerprint = :fingerprint AND attempt.job_id < :before ORDER BY attempt.job_id DESC LIMIT :limit;

-- name: died_alike
-- Dead letters with this fingerprint, newest first.
SELECT place.job_id FROM {finished} AS place INDEXED BY {finished_fingerprint}
WHERE place.state = 'dead' AND place.fingerprint = :fingerprint AND place.job_id < :before
ORDER BY place.job_id DESC LIMIT :limit;
