-- name: write
INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
VALUES (:now, :actor, :why, :source, :jobs, :bulk, :action, :job_id, :details)
RETURNING id, at, actor, action, job_id, details, why, source, jobs, bulk_id;

-- name: write_each
INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
SELECT :now, :actor, :why, :source, 1, :bulk, :action, row.value, :details FROM json_each(:ids) AS row;

-- name: note_command
-- An action on jobs before it happens, with the state of each; what is null in the details is left out.
INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
SELECT
    :now, :actor, :why, :source, 1, :bulk, :action, job.id,
    json_patch(
        json_object(
            'before', json_object(
                'state', CASE
                    WHEN lease.job_id IS NOT NULL THEN 'running' ELSE COALESCE(parked.state, finished.state, 'ready')
                END,
                'kind', job.kind,
                'mark', job.mark,
                'due_at', strftime('%Y-%m-%dT%H:%M:%S', parked.due_at / 1000000, 'unixepoch')
                || printf('.%06d+00:00', parked.due_at % 1000000)
            )
        ),
        :details
    )
FROM json_each(:ids) AS row
CROSS JOIN {job} AS job ON job.id = row.value
LEFT JOIN {lease} AS lease ON lease.job_id = job.id
LEFT JOIN {parked} AS parked ON parked.job_id = job.id
LEFT JOIN {finished} AS finished ON finished.job_id = job.id;

-- name: note_redate
-- Parked jobs that are about to be redated, each with its old and new time.
INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
SELECT
    :now, :actor, :why, :source, 1, :bulk, 'redate', parked.job_id,
    json_object(
        'before', json_object(
            'due_at', strftime('%Y-%m-%dT%H:%M:%S', parked.due_at / 1000000, 'unixepoch')
            || printf('.%06d+00:00', parked.due_at % 1000000)
        ),
        'after', json_object(
            'due_at', strftime('%Y-%m-%dT%H:%M:%S', (parked.due_at - parked.parked_at + :now) / 1000000, 'unixepoch')
            || printf('.%06d+00:00', (parked.due_at - parked.parked_at + :now) % 1000000)
        )
    )
FROM json_each(:ids) AS row CROSS JOIN {parked} AS parked ON parked.job_id = row.value;

-- name: note_moves
-- What the engine itself did with claims.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, {ACTOR_SYSTEM}, row.value ->> 1, job.id,
    json_object(
        'old_status', 'running', 'new_status', row.value ->> 2, 'attempts', row.value ->> 3,
        'max_attempts', job.max_attempts
    )
FROM json_each(:rows) AS row CROSS JOIN {job} AS job ON job.id = row.value ->> 0;

-- name: note_children
-- Jobs that are about to be cancelled with their parents, wherever they stand.
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT
    :now, {ACTOR_SYSTEM}, {ACTION_CANCEL}, job.id,
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
SELECT
    entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details, entry.why, entry.source, entry.jobs,
    entry.bulk_id
FROM {audit} AS entry INDEXED BY {audit_at}

-- name: entries_by_job_id
SELECT
    entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details, entry.why, entry.source, entry.jobs,
    entry.bulk_id
FROM {audit} AS entry INDEXED BY {audit_job}

-- name: entries_by_actor
SELECT
    entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details, entry.why, entry.source, entry.jobs,
    entry.bulk_id
FROM {audit} AS entry INDEXED BY {audit_actor}

-- name: entries_by_action
SELECT
    entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details, entry.why, entry.source, entry.jobs,
    entry.bulk_id
FROM {audit} AS entry INDEXED BY {audit_action}

-- name: entries_by_bulk
SELECT
    entry.id, entry.at, entry.actor, entry.action, entry.job_id, entry.details, entry.why, entry.source, entry.jobs,
    entry.bulk_id
FROM {audit} AS entry INDEXED BY {audit_bulk}

-- name: in_time
entry.at >= :since AND entry.at <= :until_at AND (entry.at, entry.id) < (:until_at, :until_id)

-- name: of_job_id
entry.job_id = :job_id

-- name: of_actor
entry.actor = :actor

-- name: of_others
entry.actor <> {ACTOR_SYSTEM}

-- name: of_action
entry.action = :action

-- name: of_source
(entry.source = :source OR substr(entry.source, 1, length(:source) + 1) = :source || ' ')

-- name: of_bulk
entry.bulk_id = :bulk

-- name: newest_first
ORDER BY entry.at DESC, entry.id DESC LIMIT :limit;

-- name: at
SELECT entry.at FROM {audit} AS entry WHERE entry.id = :id;

-- name: allow_pruning
-- Entries up to this time may be deleted from now on.
INSERT INTO {audit_retention} (one, pruned_to) VALUES (1, :before)
ON CONFLICT (one) DO UPDATE SET pruned_to = max(pruned_to, excluded.pruned_to);

-- name: forget
DELETE FROM {audit}
WHERE id IN (SELECT entry.id FROM {audit} AS entry WHERE entry.at <= :before ORDER BY entry.at LIMIT :limit);
