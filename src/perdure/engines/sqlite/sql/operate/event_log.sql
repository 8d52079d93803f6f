-- name: state
-- The end is the newest event, or the place up to which events are deleted.
SELECT
    switch.keep, switch.since, switch.pruned_to,
    max(switch.pruned_to, COALESCE((SELECT max(id) FROM {event_log}), 0))
FROM {event_switch} AS switch;

-- name: read
SELECT id, at, type, subject, kind, queue, tags, details FROM {event_log} WHERE id > :after ORDER BY id LIMIT :limit;

-- name: mark_beginning
-- The place where the log starts again: after every cursor that was returned, before every future event.
INSERT INTO {event_log} (at, type, subject, details) VALUES (:now, 'log.switched_on', '', '{}');

-- name: switch_on
-- Events from before a pause of the log cannot be read: a follower would not notice the gap.
INSERT INTO {event_switch} (one, keep, since, pruned_to)
VALUES (1, :keep, :now, COALESCE((SELECT max(id) FROM {event_log}), 0))
ON CONFLICT (one) DO UPDATE SET
    keep = excluded.keep,
    since = CASE WHEN keep IS NULL THEN excluded.since ELSE since END,
    pruned_to = CASE WHEN keep IS NULL THEN max(pruned_to, excluded.pruned_to) ELSE pruned_to END;

-- name: switch_off
UPDATE {event_switch} SET keep = NULL;

-- name: log_ends
CREATE TRIGGER IF NOT EXISTS {log_ends} AFTER INSERT ON {finished} BEGIN
    INSERT INTO {event_log} (at, type, subject, kind, queue, tags, details)
    SELECT
        new.finished_at, CASE new.state WHEN 'dead' THEN 'job.died' ELSE 'job.' || new.state END, new.job_id, job.kind,
        new.queue, job.tags,
        json_object(
            'reason', new.reason, 'note', new.note, 'failures', new.failures, 'crashes', new.crashes,
            'worker', new.worker, 'started_at', new.started_at, 'fingerprint', new.fingerprint,
            'last', CASE new.state WHEN 'dead' THEN (
                SELECT json_array(error_type, message) FROM {attempt}
                WHERE job_id = new.job_id ORDER BY token DESC LIMIT 1
            ) END
        )
    FROM {job} AS job WHERE job.id = new.job_id;
END;

-- name: log_missed
CREATE TRIGGER IF NOT EXISTS {log_missed} AFTER INSERT ON {fire} WHEN new.fate = 'missed' BEGIN
    INSERT INTO {event_log} (at, type, subject, kind, queue, details)
    SELECT
        new.at, 'schedule.missed', new.schedule, definition ->> 'kind', definition ->> 'queue',
        json_object('nominal_at', new.nominal_at)
    FROM {schedule} WHERE name = new.schedule;
END;

-- name: leave_ends
DROP TRIGGER IF EXISTS {log_ends};

-- name: leave_missed
DROP TRIGGER IF EXISTS {log_missed};

-- name: old
-- While the log is off, all events have expired.
SELECT max(first.id)
FROM (SELECT id, at FROM {event_log} ORDER BY id LIMIT :limit) AS first
CROSS JOIN {event_switch} AS switch
WHERE switch.keep IS NULL OR first.at <= :now - switch.keep;

-- name: forget
DELETE FROM {event_log} WHERE id <= :to;

-- name: note_forgotten
UPDATE {event_switch} SET pruned_to = max(pruned_to, :to);
