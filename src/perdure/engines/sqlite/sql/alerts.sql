-- name: book
SELECT coalesce(book.version, 0), coalesce(book.memory, '')
FROM (SELECT 1 AS id) AS one LEFT JOIN {alert_book} AS book ON book.id = one.id;

-- name: live
SELECT alert FROM {alert} WHERE is_live ORDER BY rule, key;

-- name: live_of
SELECT alert FROM {alert} WHERE is_live AND rule = :rule;

-- name: said
SELECT rule, at FROM {alert_notice} WHERE at > :since AND rule IS NOT NULL ORDER BY at;

-- name: pending
SELECT notice_id, channel, job_id, state, changed_at, error
FROM {alert_delivery} WHERE state = 'pending' ORDER BY changed_at LIMIT :limit;

-- name: turn
-- The fence: an evaluation that began with an older version writes nothing.
INSERT INTO {alert_book} AS book (id, version, memory) VALUES (1, 1, :memory)
ON CONFLICT (id) DO UPDATE SET version = book.version + 1, memory = excluded.memory
WHERE book.version = :version;

-- name: put_alert
INSERT INTO {alert} (id, rule, key, is_open, is_live, opened_at, alert)
VALUES (:id, :rule, :key, :is_open, :is_live, :opened_at, :alert)
ON CONFLICT (id) DO UPDATE SET is_open = excluded.is_open, is_live = excluded.is_live, alert = excluded.alert;

-- name: put_notice
INSERT INTO {alert_notice} (id, rule, at, notice) VALUES (:id, :rule, :at, :notice);

-- name: put_delivery
INSERT INTO {alert_delivery} (notice_id, channel, job_id, state, changed_at)
VALUES (:notice_id, :channel, :job_id, 'pending', :now);

-- name: lose_delivery
UPDATE {alert_delivery} SET state = 'failed', changed_at = :now, error = coalesce(:error, error)
WHERE notice_id = :notice_id AND channel = :channel AND state = 'pending';

-- name: note_delivery
UPDATE {alert_delivery} SET
    state = CASE WHEN :error IS NULL THEN 'sent' ELSE state END, changed_at = :now, error = :error
WHERE notice_id = :notice_id AND channel = :channel AND state <> 'sent';

-- name: note_sent
UPDATE {alert_channel} SET sent_at = :now, failures = 0 WHERE name = :channel;

-- name: note_failed
UPDATE {alert_channel} SET failed_at = :now, error = :error, failures = failures + 1 WHERE name = :channel;

-- name: forget_alerts
DELETE FROM {alert}
WHERE id IN (SELECT id FROM {alert} WHERE opened_at < :before AND NOT is_live ORDER BY opened_at LIMIT :limit);

-- name: forget_deliveries
DELETE FROM {alert_delivery}
WHERE notice_id IN (SELECT id FROM {alert_notice} WHERE at < :before ORDER BY at LIMIT :limit);

-- name: forget_notices
DELETE FROM {alert_notice}
WHERE id IN (SELECT id FROM {alert_notice} WHERE at < :before ORDER BY at LIMIT :limit);

-- name: alerts
SELECT alert FROM {alert}
WHERE (:rule IS NULL OR rule = :rule) AND (NOT :open_only OR is_open) AND (opened_at, id) < (:at, :id)
ORDER BY opened_at DESC, id DESC LIMIT :limit;

-- name: notices
SELECT notice FROM {alert_notice} WHERE (at, id) < (:at, :id) ORDER BY at DESC, id DESC LIMIT :limit;

-- name: notice
SELECT notice FROM {alert_notice} WHERE id = :id;

-- name: deliveries
SELECT notice_id, channel, job_id, state, changed_at, error
FROM {alert_delivery} WHERE notice_id IN (SELECT value FROM json_each(:ids)) ORDER BY notice_id, channel;

-- name: failures
-- Groups that failed in the hours since then, with their deaths by hour.
SELECT known.fingerprint, known.kind, known.error_type, known.message, known.first_at, known.last_at, counted.hour,
    counted.deaths
FROM {failure_count} AS counted INDEXED BY {failure_count_hour}
CROSS JOIN {failure_group} AS known ON known.fingerprint = counted.fingerprint
WHERE counted.hour >= :hour AND known.last_at >= :since
ORDER BY known.last_at DESC, known.fingerprint
LIMIT :limit;

-- name: missed
SELECT fire.schedule, fire.nominal_at, fire.fate, fire.cause, fire.at, fire.job_id
FROM {fire} AS fire INDEXED BY {fire_missed}
WHERE fire.fate = 'missed' AND fire.at >= :since
ORDER BY fire.at DESC LIMIT :limit;
