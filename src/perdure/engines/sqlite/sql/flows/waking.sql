-- name: held
-- Jobs held for a reason whose note begins in one of these ways, in the order of their ids, beyond `after`. The reason
-- is a literal, so that the planner can use its index.
SELECT
    CAST(json_group_array(json_array(job_id, queue, unique_key, unique_states, unique_dead_for)) AS BLOB)
FROM (
    SELECT parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    FROM {parked} AS parked CROSS JOIN {job} AS job ON job.id = parked.job_id
    WHERE
        parked.reason = {reason_held} AND parked.job_id > :after
        AND (
            SELECT max(substr(parked.note || ' ', 1, length(row.value)) = row.value) FROM json_each(:openings) AS row
        )
    ORDER BY parked.job_id
    LIMIT :limit
);
