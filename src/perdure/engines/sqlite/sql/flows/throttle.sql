-- name: taken
-- A key that was taken more than a minute from now was taken before the clock was put back, and is free.
SELECT 1 FROM {throttle}
WHERE key = :key AND caller <> :caller AND until > :now AND since <= :now + 60000000;

-- name: take
INSERT INTO {throttle} (key, caller, since, until) VALUES (:key, :caller, :now, :until)
ON CONFLICT (key) DO UPDATE SET
    caller = excluded.caller,
    since = CASE WHEN caller = excluded.caller THEN since ELSE excluded.since END,
    until = CASE WHEN caller = excluded.caller THEN until ELSE excluded.until END;

-- name: forget
DELETE FROM {throttle} WHERE key IN (SELECT key FROM {throttle} WHERE until <= :now ORDER BY until LIMIT 20);

-- name: forget_ahead
-- Keys that were taken before the clock was put back; a clock that was far ahead has left them last in the index.
DELETE FROM {throttle}
WHERE key IN (SELECT key FROM {throttle} ORDER BY until DESC LIMIT 20) AND since > :now + 60000000;
