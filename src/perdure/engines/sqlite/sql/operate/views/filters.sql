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
-- In the order of ids: the planner would rather find all jobs of a state and sort them.
FROM {finished} AS place NOT INDEXED CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_finished_dead
FROM {finished} AS place INDEXED BY {finished_dead} CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_finished_dead_alike
FROM {finished} AS place INDEXED BY {finished_fingerprint} CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_finished_cancelled
FROM {finished} AS place INDEXED BY {finished_cancelled} CROSS JOIN {job} AS job ON job.id = place.job_id

-- name: from_job_to_finished
FROM {job} AS job CROSS JOIN {finished} AS place ON place.job_id = job.id

-- name: walk_ready
-- Steps along the ids of all jobs, among which the jobs of a long line are looked for.
SELECT job.id FROM {job} AS job WHERE job.id < :before ORDER BY job.id DESC LIMIT 1 OFFSET :step

-- name: walk_lease
SELECT place.job_id FROM {lease} AS place WHERE place.job_id < :before ORDER BY place.job_id DESC LIMIT 1 OFFSET :step

-- name: walk_parked
SELECT place.job_id FROM {parked} AS place NOT INDEXED
WHERE place.job_id < :before ORDER BY place.job_id DESC LIMIT 1 OFFSET :step

-- name: walk_finished
SELECT place.job_id FROM {finished} AS place NOT INDEXED
WHERE place.job_id < :before ORDER BY place.job_id DESC LIMIT 1 OFFSET :step

-- name: walk_finished_dead
SELECT place.job_id FROM {finished} AS place INDEXED BY {finished_dead}
WHERE place.state = 'dead' AND place.job_id < :before ORDER BY place.job_id DESC LIMIT 1 OFFSET :step

-- name: walk_finished_cancelled
SELECT place.job_id FROM {finished} AS place INDEXED BY {finished_cancelled}
WHERE place.state = 'cancelled' AND place.job_id < :before ORDER BY place.job_id DESC LIMIT 1 OFFSET :step

-- name: made_at
SELECT job.created_at FROM {job} AS job WHERE job.id = :id

-- name: floor
{lead} >= :floor

-- name: ids
{lead} IN (SELECT value FROM json_each(:ids))

-- name: before
{lead} < :before

-- name: kind
job.kind = :kind

-- name: dead_of_kind
-- A fingerprint belongs to one kind, and its group is kept as long as a dead letter has it. So a job is read only if it
-- has no fingerprint.
CASE WHEN place.fingerprint IS NULL
    THEN (SELECT job.kind FROM {job} AS job WHERE job.id = place.job_id) = :kind
    ELSE place.fingerprint IN (SELECT known.fingerprint FROM {failure_group} AS known WHERE known.kind = :kind)
END

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

-- name: walked_states
-- For states with many jobs: `+` makes the planner follow the ids, where it would sort all of them.
+place.state IN (SELECT value FROM json_each(:states))

-- name: known_ends
-- `+`: otherwise the planner finds all jobs of the state and sorts them, even with NOT INDEXED.
+place.state IN ('succeeded', 'dead', 'cancelled')

-- name: succeeded
+place.state = 'succeeded'

-- name: dead
place.state = 'dead'

-- name: cancelled
place.state = 'cancelled'

-- name: not_asked
place.cancel_at IS NULL

-- name: comes_back
place.due_at IS NOT NULL

-- name: key_free_at
-- The jobs that would be ready and whose unique key no other job holds.
NOT EXISTS (
    SELECT 1 FROM {unique_hold} AS hold
    WHERE
        hold.key = job.unique_key
        AND hold.job_id <> job.id
        AND (hold.expires_at IS NULL OR hold.expires_at > :key_free_at)
        AND instr(',' || job.unique_states || ',', ',ready,') > 0
)

-- name: dead_alike
place.fingerprint = :fingerprint

-- name: needle_args
instr(lower(job.args), :needle_args) > 0

-- name: needle_meta
instr(lower(job.meta), :needle_meta) > 0

-- name: needle_result
instr(lower(place.result), :needle_result) > 0

-- name: no_needle_result
:needle_result IS NULL

-- name: where_args
perdure_meets(job.args, :where_args)

-- name: where_meta
perdure_meets(job.meta, :where_meta)

-- name: where_tags
perdure_meets(coalesce(job.tags, '[]'), :where_tags)

-- name: where_result
perdure_meets(place.result, :where_result)

-- name: where_no_result
perdure_meets(NULL, :where_result)

-- name: where_error
perdure_meets(CASE WHEN place.failures + place.crashes > 0 THEN (
    SELECT json_array(error_type, message) FROM {attempt} WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
) END, :where_error)

-- name: where_last_error
perdure_meets(CASE WHEN place.failures + place.crashes > 0 OR place.state = 'dead' THEN (
    SELECT json_array(error_type, message) FROM {attempt} WHERE job_id = place.job_id ORDER BY token DESC LIMIT 1
) END, :where_error)

-- name: fingerprint
EXISTS (
    SELECT 1 FROM {attempt} AS attempt
    WHERE
        attempt.job_id = place.job_id
        AND attempt.token = (SELECT max(token) FROM {attempt} WHERE job_id = place.job_id)
        AND attempt.fingerprint = :fingerprint
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
