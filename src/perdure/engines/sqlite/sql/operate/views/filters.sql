-- name: newest_first
ORDER BY {lead} DESC LIMIT :limit

-- name: oldest_first
ORDER BY {lead} LIMIT :limit

-- name: from_ready
FROM {ready} AS place CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_job_to_ready
FROM {job} AS job CROSS JOIN {ready} AS place ON
    place.queue = job.queue AND place.priority = job.priority AND place.turn = job.turn AND place.job_id = job.id

-- name: from_lease
FROM {lease} AS place CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_job_to_lease
FROM {job} AS job CROSS JOIN {lease} AS place ON place.job_id = job.id

-- name: from_parked
FROM {parked} AS place CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_job_to_parked
FROM {job} AS job CROSS JOIN {parked} AS place ON place.job_id = job.id

-- name: from_finished
-- In the order of ids: the planner would sooner find all of a state and sort them.
FROM {finished} AS place NOT INDEXED CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_finished_dead
FROM {finished} AS place INDEXED BY {finished_dead} CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_finished_cancelled
FROM {finished} AS place INDEXED BY {finished_cancelled} CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_job_to_finished
FROM {job} AS job CROSS JOIN {finished} AS place ON place.job_id = job.id

-- name: ids
{lead} IN (SELECT value FROM json_each(:ids))

-- name: before
{lead} < :before

-- name: kind
job.kind = :kind

-- name: queue
job.queue = :queue

-- name: tag
EXISTS (SELECT 1 FROM json_each(job.tags) AS tag WHERE tag.value = :tag)

-- name: ref
job.ref = :ref

-- name: created_before
job.created_at < :created_before

-- name: created_after
job.created_at > :created_after

-- name: finished_before
place.finished_at < :finished_before

-- name: finished_after
place.finished_at > :finished_after

-- name: mark
job.mark = :mark

-- name: has_mark
job.mark IS NOT NULL

-- name: has_no_mark
job.mark IS NULL

-- name: in_states
place.state IN (SELECT value FROM json_each(:states))

-- name: known_ends
place.state IN ('succeeded', 'dead', 'cancelled')

-- name: succeeded
place.state = 'succeeded'

-- name: dead
place.state = 'dead'

-- name: cancelled
place.state = 'cancelled'

-- name: not_asked
place.cancel_at IS NULL

-- name: comes_back
place.due_at IS NOT NULL

-- name: key_free_at
-- Of jobs that would be ready, those whose unique key nobody else holds.
NOT EXISTS (
    SELECT 1 FROM {unique_hold} AS hold
    WHERE
        hold.key = job.unique_key
        AND hold.job_id <> job.id
        AND (hold.expires_at IS NULL OR hold.expires_at > :key_free_at)
        AND instr(',' || job.unique_states || ',', ',ready,') > 0
)

-- name: failed
place.failures + place.crashes > 0

-- name: failed_or_dead
(place.failures + place.crashes > 0 OR place.state = 'dead')

-- name: error
EXISTS (
    SELECT 1 FROM {attempt} AS attempt
    WHERE
        attempt.job_id = place.job_id
        AND attempt.token = (SELECT max(token) FROM {attempt} WHERE job_id = place.job_id)
        AND instr(perdure_fold(attempt.error_type || ': ' || attempt.message), :error) > 0
)
