-- name: pause
INSERT INTO {pause} (id, queue, kind, args, until, why, actor, at)
VALUES (%(id)s::text, %(queue)s::text, %(kind)s::text, %(args)s::text, %(until)s::timestamptz, %(why)s::text,
        %(actor)s::text, %(at)s::timestamptz)
ON CONFLICT DO NOTHING RETURNING id;

-- name: resume
DELETE FROM {pause} WHERE id = ANY (%(ids)s::text[]) RETURNING id, queue, kind, args, until, why, actor, at;

-- name: expire
-- The process that deletes an expired pause releases its jobs.
DELETE FROM {pause} WHERE until <= coalesce(%(now)s::timestamptz, now()) RETURNING id;

-- name: pauses
SELECT id, queue, kind, args, until, why, actor, at, coalesce(until <= coalesce(%(now)s::timestamptz, now()), false)
FROM {pause} ORDER BY at, id;

-- name: unpaused
-- Jobs whose note names a pause that is over: parked by a worker that did not know that yet.
SELECT p.job_id::text FROM {parked} p
WHERE p.reason IN ({REASON_BREAKER_OPEN}, {REASON_ON_HOLD}) AND p.reason = {REASON_ON_HOLD}
  AND NOT EXISTS (
      SELECT FROM {pause} a
      WHERE starts_with(p.note || ' ', {PAUSE_NOTE} || a.id || ' ') OR starts_with(p.note, {PAUSE_NOTE} || a.id || ':')
         OR starts_with(p.note, {PAUSE_NOTE} || a.id || ',')
  )
ORDER BY p.job_id LIMIT %(limit)s::int;
