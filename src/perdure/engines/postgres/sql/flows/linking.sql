-- name: next_link
-- The data to make the next link of a chain, if the chain waits only for the end of the previous link.
SELECT l.document, c.result,
       NOT EXISTS (SELECT FROM {plan} n WHERE n.job_id = %(id)s::uuid AND n.number = %(number)s::int + 1)
FROM (SELECT job_id, state, awaits, also_awaits FROM {parked} WHERE job_id = %(id)s::uuid OFFSET 0 FOR UPDATE) p
JOIN {plan} l ON l.job_id = p.job_id AND l.number = %(number)s::int
JOIN {child} c ON c.parent_id = p.job_id AND c.family = %(family)s::text AND c.number = 0
WHERE p.state = 'waiting' AND p.awaits = %(awaits)s::text AND p.also_awaits IS NULL
  AND NOT EXISTS (SELECT FROM {family} f WHERE f.parent_id = %(id)s::uuid AND f.key = %(next_family)s::text);

-- name: sleep_on
-- The chain waits for its new link; workers are notified when the transaction commits.
WITH notified AS MATERIALIZED (
    SELECT pg_notify(%(channel)s::text, %(queue)s::text)
)
UPDATE {parked} SET awaits = %(awaits)s::text WHERE job_id = %(id)s::uuid AND (SELECT count(*) FROM notified) > 0;
