-- name: lock_events
-- Serialises the emitter of an event and jobs that park for it. The locks are taken in the given order.
SELECT pg_advisory_xact_lock(k.lock) FROM unnest(%(locks)s::bigint[]) AS k (lock);

-- name: known
SELECT name FROM {event} WHERE name = ANY (%(names)s::text[]);

-- name: emit
-- The first emission stays.
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
-- Jobs that wait for the event, alone or among others. Waking them checks whether they still do.
WITH others AS (
    DELETE FROM {waiter} WHERE event = %(name)s::text RETURNING job_id
)
SELECT job_id::text FROM {parked} WHERE awaits = %(awaits)s::text AND state = 'waiting'
UNION ALL
SELECT job_id::text FROM others;

-- name: asking
-- A question is an event named by one prefix and the job's id, so questions are in the order of jobs.
(
    SELECT job_id::text, substr(awaits, 7) AS event FROM {parked}
    WHERE awaits >= 'event:' || %(first)s::text AND awaits < 'event:' || %(behind)s::text
    ORDER BY awaits DESC LIMIT %(limit)s::bigint
)
UNION ALL
(
    SELECT job_id::text, event FROM {waiter} WHERE event >= %(first)s::text AND event < %(behind)s::text
    ORDER BY event DESC LIMIT %(limit)s::bigint
)
ORDER BY event DESC LIMIT %(limit)s::bigint;

-- name: emitted
SELECT payload, at FROM {event} WHERE name = %(name)s::text;
