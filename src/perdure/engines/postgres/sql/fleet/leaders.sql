-- name: lead
-- Renew the lease, take over a free or expired one, or return the leader. No row: the leader changed during the query.
-- A lease that ends later than any new one was given before the clock was set back, and has expired. The time at which
-- the row is read decides: `now()` may be earlier than the time at which the holder renewed the lease.
WITH ours AS (
    INSERT INTO {leader} AS l (name, holder, term, lease, since, until)
    SELECT %(name)s::text, %(holder)s::text, 1, %(lease)s::interval, t.now, t.now + %(lease)s::interval
    FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) t
    ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, until = excluded.until, lease = excluded.lease,
        term = CASE WHEN l.holder = excluded.holder THEN l.term ELSE l.term + 1 END,
        since = CASE WHEN l.holder = excluded.holder AND l.until > excluded.since
                     THEN least(l.since, excluded.since) ELSE excluded.since END
    WHERE l.holder = excluded.holder OR l.until <= excluded.since
          OR l.until > coalesce(%(now)s::timestamptz, clock_timestamp()) + l.lease
    RETURNING l.term, l.holder, l.until
), answer AS (
    SELECT true AS is_ours, o.term, o.holder, o.until FROM ours o
    UNION ALL
    SELECT false, l.term, l.holder, l.until FROM {leader} l
    WHERE l.name = %(name)s::text AND l.holder <> %(holder)s::text AND NOT EXISTS (SELECT FROM ours)
      AND l.until > coalesce(%(now)s::timestamptz, now())
      AND l.until <= coalesce(%(now)s::timestamptz, clock_timestamp()) + l.lease
)
SELECT is_ours, term, holder, until - coalesce(%(now)s::timestamptz, clock_timestamp()) FROM answer;

-- name: step_down
-- The row stays, so that the next leader's term is higher.
UPDATE {leader} SET until = coalesce(%(now)s::timestamptz, now())
WHERE name = %(name)s::text AND holder = %(holder)s::text AND until > coalesce(%(now)s::timestamptz, now());

-- name: leaders
SELECT name, holder, term, since, until FROM {leader}
WHERE until > coalesce(%(now)s::timestamptz, now()) AND until <= coalesce(%(now)s::timestamptz, clock_timestamp()) + lease
ORDER BY name;
