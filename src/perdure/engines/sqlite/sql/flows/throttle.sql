-- name: taken
-- A key taken more than a minute in the future was taken before the clock was set back, and is free.
SELECT 1 FROM {throttle}
WHERE key = :key AND caller <> :caller AND until > :now AND since <= :now + {CLOCK_SLACK};

-- name: take
INSERT INTO {throttle} (key, caller, since, until) VALUES (:key, :caller, :now, :until)
ON CONFLICT (key) DO UPDATE SET
    caller = excluded.caller,
    since = CASE WHEN caller = excluded.caller THEN since ELSE excluded.since END,
    until = CASE WHEN caller = excluded.caller THEN until ELSE excluded.until END;

-- name: forget
DELETE FROM {throttle} WHERE key IN (SELECT key FROM {throttle} WHERE until <= :now ORDER BY until LIMIT {THROTTLE_KEYS_FORGOTTEN_AT_ONCE});

-- name: forget_ahead
-- Keys taken before the clock was set back. If the clock was far ahead, they are the last in the index.
DELETE FROM {throttle}
WHERE key IN (SELECT key FROM {throttle} ORDER BY until DESC LIMIT {THROTTLE_KEYS_FORGOTTEN_AT_ONCE}) AND since > :now + {CLOCK_SLACK};
