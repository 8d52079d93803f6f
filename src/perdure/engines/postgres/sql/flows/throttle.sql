-- name: take
-- Returns a row if the caller has taken the key. A key taken more than a minute in the future was taken before the
-- clock was set back, and is free. Times less than a minute ahead come from callers that ask at the same time.
INSERT INTO {throttle} AS t (key, caller, since, until)
SELECT %(key)s::text, %(caller)s::text, n.now, n.now + %(micros)s::bigint * interval '1 microsecond'
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) n
ON CONFLICT (key) DO UPDATE
SET caller = excluded.caller,
    since = CASE WHEN t.caller = excluded.caller THEN t.since ELSE excluded.since END,
    until = CASE WHEN t.caller = excluded.caller THEN t.until ELSE excluded.until END
WHERE t.caller = excluded.caller OR t.until <= excluded.since OR t.since > excluded.since + {CLOCK_SLACK}
RETURNING 1;

-- name: forget
-- Rows that another caller is taking are skipped.
DELETE FROM {throttle} WHERE key IN (
    SELECT t.key FROM {throttle} t WHERE t.until <= coalesce(%(now)s::timestamptz, now())
    ORDER BY t.until LIMIT {THROTTLE_KEYS_FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED
);

-- name: forget_ahead
-- Keys taken before the clock was set back. If the clock was far ahead, they are the last in the index.
DELETE FROM {throttle} WHERE key IN (
    SELECT t.key FROM {throttle} t
    WHERE t.key IN (SELECT l.key FROM {throttle} l ORDER BY l.until DESC LIMIT {THROTTLE_KEYS_FORGOTTEN_AT_ONCE})
      AND t.since > coalesce(%(now)s::timestamptz, clock_timestamp()) + {CLOCK_SLACK}
    FOR UPDATE SKIP LOCKED
);
