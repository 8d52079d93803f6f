-- name: leader
-- The holder of a valid lease. A lease that ends later than any new one was given before the clock was set back, and
-- has expired.
SELECT holder, term, until FROM {leader} WHERE name = :name AND until > :now AND until <= :now + lease;

-- name: lead
-- For a process that has seen, in the same transaction, that no other one leads. The term rises with every change of leader.
INSERT INTO {leader} (name, holder, term, lease, since, until) VALUES (:name, :holder, 1, :lease, :now, :until)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder,
    until = excluded.until,
    lease = excluded.lease,
    term = term + (holder <> excluded.holder),
    since = CASE WHEN holder = excluded.holder AND until > :now THEN min(since, excluded.since) ELSE excluded.since END
RETURNING term;

-- name: step_down
-- The row stays, so that the next leader's term is higher.
UPDATE {leader} SET until = :now WHERE name = :name AND holder = :holder AND until > :now;

-- name: leaders
SELECT name, holder, term, since, until FROM {leader}
WHERE until > :now AND until <= :now + lease
ORDER BY name;
