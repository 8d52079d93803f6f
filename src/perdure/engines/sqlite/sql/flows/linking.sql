-- name: next_link
-- The data to make the next link of a chain, if the chain waits only for the end of the previous link.
SELECT
    plan.document, child.result,
    NOT EXISTS (SELECT 1 FROM {plan} AS later WHERE later.job_id = :chain AND later.number = :number + 1)
FROM {parked} AS parked
CROSS JOIN {plan} AS plan ON plan.job_id = parked.job_id AND plan.number = :number
CROSS JOIN {child} AS child ON child.parent_id = parked.job_id AND child.family = :family AND child.number = 0
WHERE
    parked.job_id = :chain AND parked.state = 'waiting' AND parked.awaits = :awaits AND parked.also_awaits IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM {family} AS made
        WHERE made.parent_id = :chain AND made.key = :next_family
    );

-- name: sleep_on
UPDATE {parked} SET awaits = :awaits WHERE job_id = :chain;
