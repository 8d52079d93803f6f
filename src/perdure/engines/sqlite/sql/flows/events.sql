-- name: add_event
-- The first payload is kept for good.
INSERT INTO {event} (name, payload, actor, at) VALUES (:event, :payload, :actor, :now) ON CONFLICT DO NOTHING;

-- name: event
SELECT payload, at FROM {event} WHERE name = :event;

-- name: known
SELECT event.name FROM json_each(:names) AS row CROSS JOIN {event} AS event ON event.name = row.value;

-- name: waiting
-- What is needed to make the waiting jobs ready; a job that now waits for something else is skipped.
SELECT
    CAST(json_group_array(json_array(
        parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    )) AS BLOB)
FROM {waiter} AS waiter
CROSS JOIN {parked} AS parked ON parked.job_id = waiter.job_id
CROSS JOIN {job} AS job ON job.id = parked.job_id
WHERE
    waiter.event = :event AND parked.state = 'waiting'
    AND (
        parked.awaits = 'event:' || :event
        OR 'event:' || :event IN (SELECT value FROM json_each(parked.also_awaits))
    );

-- name: asking
-- A question is an event named by one prefix and the job's id, so questions are in the order of jobs.
SELECT waiter.job_id FROM {waiter} AS waiter
WHERE waiter.event >= :first AND waiter.event < :behind ORDER BY waiter.event DESC LIMIT :limit;

-- name: add_waiters
-- Only jobs that have parked; a job that was cancelled or denied its key waits for no event.
INSERT INTO {waiter} (event, job_id)
SELECT substr(parked.awaits, 7), parked.job_id
FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value
WHERE parked.awaits GLOB 'event:*'
UNION ALL
SELECT substr(json_each.value, 7), parked.job_id
FROM json_each(:ids) AS row
CROSS JOIN {parked} AS parked ON parked.job_id = row.value
CROSS JOIN json_each(parked.also_awaits)
WHERE json_each.value GLOB 'event:*'
ON CONFLICT DO NOTHING;

-- name: drop_waiters
DELETE FROM {waiter} WHERE event = :event;
