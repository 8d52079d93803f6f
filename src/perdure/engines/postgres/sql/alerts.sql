-- name: book
SELECT coalesce(book.version, 0), coalesce(book.memory, ''), coalesce(%(now)s::timestamptz, now())
FROM (SELECT 1 AS id) one LEFT JOIN {alert_book} AS book ON book.id = one.id;

-- name: live
SELECT alert FROM {alert} WHERE is_live ORDER BY rule, key;

-- name: live_of
SELECT alert FROM {alert} WHERE is_live AND rule = %(rule)s::text;

-- name: said
SELECT rule, at FROM {alert_notice} WHERE at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(since)s::float8) AND rule IS NOT NULL ORDER BY at;

-- name: pending
SELECT notice_id, channel, job_id, state, changed_at, error
FROM {alert_delivery} WHERE state = 'pending' ORDER BY changed_at LIMIT %(limit)s::bigint;

-- name: turn
-- The fence: an evaluation that began with an older version writes nothing.
INSERT INTO {alert_book} AS book (id, version, memory) VALUES (1, 1, %(memory)s::text)
ON CONFLICT (id) DO UPDATE SET version = book.version + 1, memory = excluded.memory
WHERE book.version = %(version)s::bigint
RETURNING book.version;

-- name: put_alert
INSERT INTO {alert} (id, rule, key, is_open, is_live, opened_at, alert)
VALUES (%(id)s::text, %(rule)s::text, %(key)s::text, %(is_open)s::boolean, %(is_live)s::boolean,
    %(opened_at)s::timestamptz, %(alert)s::text)
ON CONFLICT (id) DO UPDATE SET is_open = excluded.is_open, is_live = excluded.is_live, alert = excluded.alert;

-- name: put_notice
INSERT INTO {alert_notice} (id, rule, at, notice) VALUES (%(id)s::text, %(rule)s::text, %(at)s::timestamptz,
    %(notice)s::text);

-- name: put_delivery
INSERT INTO {alert_delivery} (notice_id, channel, job_id, state, changed_at)
VALUES (%(notice_id)s::text, %(channel)s::text, %(job_id)s::text, 'pending', coalesce(%(now)s::timestamptz, now()));

-- name: lose_delivery
UPDATE {alert_delivery} SET state = 'failed', changed_at = coalesce(%(now)s::timestamptz, now()),
    error = coalesce(%(error)s::text, error)
WHERE notice_id = %(notice_id)s::text AND channel = %(channel)s::text AND state = 'pending';

-- name: note_delivery
UPDATE {alert_delivery} SET
    state = CASE WHEN %(error)s::text IS NULL THEN 'sent' ELSE state END, changed_at = coalesce(%(now)s::timestamptz,
    now()), error = %(error)s::text
WHERE notice_id = %(notice_id)s::text AND channel = %(channel)s::text AND state <> 'sent';

-- name: note_sent
UPDATE {alert_channel} SET sent_at = coalesce(%(now)s::timestamptz, now()), failures = 0
    WHERE name = %(channel)s::text;

-- name: note_failed
UPDATE {alert_channel} SET failed_at = coalesce(%(now)s::timestamptz, now()), error = %(error)s::text,
    failures = failures + 1 WHERE name = %(channel)s::text;

-- name: forget_alerts
DELETE FROM {alert}
WHERE id IN (SELECT id FROM {alert} WHERE opened_at < coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) AND NOT is_live ORDER BY opened_at LIMIT %(limit)s::bigint);

-- name: forget_deliveries
DELETE FROM {alert_delivery}
WHERE notice_id IN (SELECT id FROM {alert_notice} WHERE at < coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) ORDER BY at LIMIT %(limit)s::bigint);

-- name: forget_notices
DELETE FROM {alert_notice}
WHERE id IN (SELECT id FROM {alert_notice} WHERE at < coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) ORDER BY at LIMIT %(limit)s::bigint);

-- name: alerts
SELECT alert FROM {alert}
WHERE (%(rule)s::text IS NULL OR rule = %(rule)s::text) AND (NOT %(open_only)s::boolean OR is_open) AND (opened_at,
    id) < (%(at)s::timestamptz, %(id)s::text)
ORDER BY opened_at DESC, id DESC LIMIT %(limit)s::bigint;

-- name: notices
SELECT notice FROM {alert_notice} WHERE (at, id) < (%(at)s::timestamptz, %(id)s::text) ORDER BY at DESC,
    id DESC LIMIT %(limit)s::bigint;

-- name: notice
SELECT notice FROM {alert_notice} WHERE id = %(id)s::text;

-- name: deliveries
SELECT notice_id, channel, job_id, state, changed_at, error
FROM {alert_delivery} WHERE notice_id IN (SELECT unnest(%(ids)s::text[])) ORDER BY notice_id, channel;

-- name: failures
-- Groups that failed in the hours since then, with their deaths by hour. Counts are spread over several rows, which
-- have the latest time of failure.
WITH counted AS (
    SELECT fingerprint, hour, sum(deaths)::bigint AS deaths, max(last_at) AS last_at
    FROM {failure_count} WHERE hour >= %(hour)s::timestamptz
    GROUP BY fingerprint, hour
), lately AS (
    SELECT fingerprint, max(last_at) AS last_at FROM counted
    GROUP BY fingerprint HAVING max(last_at) >= %(since)s::timestamptz
    ORDER BY max(last_at) DESC LIMIT %(limit)s::bigint
)
SELECT known.fingerprint, known.kind, known.error_type, known.message, known.first_at, lately.last_at, counted.hour,
    counted.deaths
FROM lately
JOIN counted ON counted.fingerprint = lately.fingerprint
JOIN {failure_group} AS known ON known.fingerprint = lately.fingerprint
ORDER BY lately.last_at DESC, known.fingerprint, counted.hour;

-- name: missed
SELECT fire.schedule, fire.nominal_at, fire.fate, fire.cause, fire.at, fire.job_id::text
FROM {fire} AS fire
WHERE fire.fate = 'missed' AND fire.at >= %(since)s::timestamptz
ORDER BY fire.at DESC LIMIT %(limit)s::bigint;
