-- name: lock_events
-- Whoever emits an event and whoever goes to sleep for it come one after the other. One lock after the other, as given.
SELECT pg_advisory_xact_lock(k.lock) FROM unnest(%(locks)s::bigint[]) AS k (lock);

-- name: known
SELECT name FROM {event} WHERE name = ANY (%(names)s::text[]);

-- name: emit
-- The first stays.
WITH new AS (
    INSERT INTO {event} (name, payload, actor, at)
    VALUES (%(name)s::text, %(payload)s::text, %(actor)s::text, coalesce(%(now)s::timestamptz, now()))
    ON CONFLICT (name) DO NOTHING
    RETURNING payload, at
)
SELECT n.payload, n.at, true FROM new n
UNION ALL
SELECT e.payload, e.at, false FROM {event} e WHERE e.name = %(name)s::text;

-- name: sleepers
-- Those that wait for the event, alone or among others. Whether they still do is asked when they are woken.
WITH others AS (
    DELETE FROM {waiter} WHERE event = %(name)s::text RETURNING job_id
)
SELECT job_id::text FROM {parked} WHERE awaits = %(awaits)s::text AND state = 'waiting'
UNION ALL
SELECT job_id::text FROM others;

-- name: emitted
SELECT payload, at FROM {event} WHERE name = %(name)s::text;
