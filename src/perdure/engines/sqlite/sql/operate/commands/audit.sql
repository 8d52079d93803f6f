-- name: write
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT :now, :actor, :action, row.value, :details FROM json_each(:ids) AS row;

-- name: note_command
-- What somebody is about to do to jobs, with the state and the kind of each; what is null in the details is left out.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, :actor, :action, job.id,
    json_patch(
        json_object(
            'from', CASE
                WHEN lease.job_id IS NOT NULL THEN 'running' ELSE COALESCE(parked.state, finished.state, 'ready')
            END,
            'kind', job.kind
        ),
        :details
    )
FROM json_each(:ids) AS row
CROSS JOIN {job} AS job ON job.id = row.value
LEFT JOIN {lease} AS lease ON lease.job_id = job.id
LEFT JOIN {parked} AS parked ON parked.job_id = job.id
LEFT JOIN {finished} AS finished ON finished.job_id = job.id;

-- name: note_reschedule
-- What somebody is about to do to parked jobs, with the time that each has now.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, :actor, 'reschedule', parked.job_id,
    json_object(
        'from', strftime('%Y-%m-%dT%H:%M:%S', parked.due_at / 1000000, 'unixepoch')
        || printf('.%06d+00:00', parked.due_at % 1000000),
        'to', :to
    )
FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value;

-- name: note_moves
-- What the engine itself did with claims.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, 'system', row.value ->> 1, job.id,
    json_object(
        'old_status', 'running', 'new_status', row.value ->> 2, 'attempts', row.value ->> 3,
        'max_attempts', job.max_attempts
    )
FROM json_each(:rows) AS row CROSS JOIN {job} AS job ON job.id = row.value ->> 0;

-- name: note_children
-- Jobs that are about to be cancelled with their parents, wherever they stand.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, 'system', 'job_cancel', job.id,
    json_object(
        'old_status', CASE WHEN lease.job_id IS NOT NULL THEN 'running' ELSE COALESCE(parked.state, 'ready') END,
        'new_status', 'cancelled',
        'attempts', COALESCE(
            lease.failures + lease.crashes, parked.failures + parked.crashes, ready.failures + ready.crashes, 0
        ),
        'max_attempts', job.max_attempts
    )
FROM json_each(:ids) AS row
CROSS JOIN {job} AS job ON job.id = row.value
LEFT JOIN {lease} AS lease ON lease.job_id = job.id
LEFT JOIN {parked} AS parked ON parked.job_id = job.id
LEFT JOIN {ready} AS ready
    ON ready.queue = job.queue AND ready.priority = job.priority AND ready.turn = job.turn AND ready.job_id = job.id;

-- name: entries_by_time
SELECT entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details
FROM {audit} AS entry INDEXED BY {audit_at}

-- name: entries_by_job_id
SELECT entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details
FROM {audit} AS entry INDEXED BY {audit_job}

-- name: entries_by_actor
SELECT entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details
FROM {audit} AS entry INDEXED BY {audit_actor}

-- name: entries_by_action
SELECT entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details
FROM {audit} AS entry INDEXED BY {audit_action}

-- name: in_time
entry.at >= :since AND entry.at <= :until_at AND (entry.at, entry.id) < (:until_at, :until_id)

-- name: of_job_id
entry.job_id = :job_id

-- name: of_actor
entry.actor = :actor

-- name: of_others
entry.actor <> 'system'

-- name: of_action
entry.action = :action

-- name: newest_first
ORDER BY entry.at DESC, entry.id DESC LIMIT :limit;

-- name: at
SELECT entry.at FROM {audit} AS entry WHERE entry.id = :id;

-- name: record
INSERT INTO {audit} (at, actor, action, job_id, details) VALUES (:now, :actor, :action, :job_id, :details)
RETURNING id, at, actor, action, job_id, details;

-- name: forget
DELETE FROM {audit}
WHERE id IN (SELECT entry.id FROM {audit} AS entry WHERE entry.at <= :before ORDER BY entry.at LIMIT :limit);
