-- name: waiting
SELECT queue, min(since) FROM {ready} GROUP BY queue ORDER BY queue;

-- name: paused
-- Jobs held back for one of the reasons, by kind; this many held-back jobs are looked at.
SELECT seen.reason, job.kind, max(seen.note), count(*), min(seen.since)
FROM (
    SELECT parked.job_id, parked.reason, parked.note, parked.since
    FROM {parked} AS parked INDEXED BY {parked_standing} WHERE parked.state = 'paused' LIMIT :cap
) AS seen CROSS JOIN {job} AS job ON job.id = seen.job_id
WHERE seen.reason IN (SELECT value FROM json_each(:reasons))
GROUP BY seen.reason, job.kind ORDER BY seen.reason, job.kind;

-- name: journal_mode
PRAGMA journal_mode;

-- name: synchronous
PRAGMA synchronous;

-- name: parked_ahead
SELECT count(*), max(parked_at) FROM {parked}
WHERE parked_at > :ahead AND due_at IS NOT NULL AND state IN ('retrying', 'waiting', 'paused');

-- name: choose_ahead
SELECT CAST(json_group_array(job_id) AS BLOB)
FROM (
    SELECT job_id FROM {parked}
    WHERE parked_at > :ahead AND due_at IS NOT NULL AND state IN ('retrying', 'waiting', 'paused')
    LIMIT :limit
);

-- name: redate_steps
UPDATE {step} SET due_at = due_at - (changed_at - :now), changed_at = :now
WHERE
    job_id IN (SELECT value FROM json_each(:ids))
    AND state = 'begun' AND kind IN ('call', 'sleep', 'poll') AND due_at IS NOT NULL AND changed_at > :ahead;

-- name: redate_parked
UPDATE {parked} SET due_at = due_at - (parked_at - :now), parked_at = :now
WHERE job_id IN (SELECT value FROM json_each(:ids));
