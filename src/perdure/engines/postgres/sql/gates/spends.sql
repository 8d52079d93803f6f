-- name: spending
-- What was spent under each name in each window, by their positions in the lists, and the estimates of the requesting
-- jobs. `spend_spans` says which sums make up a window. Spends that are not in the sums in their current form are read
-- one by one, and subtracted from the sums that hold an old form. An estimate counts while a claim holds its job, and
-- is in no sum, unless the previous release has added it: then it is subtracted. One statement reads everything,
-- because the answer is true at one instant only.
SELECT w.place, s.total, NULL::timestamptz AS at, NULL AS name, NULL AS job_id
FROM unnest(
    %(names)s::text[], %(sinces)s::timestamptz[], %(minutes)s::timestamptz[], %(hours)s::timestamptz[],
    %(days)s::timestamptz[]
) WITH ORDINALITY AS w (name, since, minutes, hours, days, place)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(p.amount), 0) AS total
    FROM (
        SELECT amount FROM {spend}
        WHERE name = w.name AND at > w.since AND at < w.minutes
        AND NOT (summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount) AND NOT is_estimate
        UNION ALL
        SELECT amount FROM {spend_sum}
        WHERE name = w.name AND span = {MINUTE} AND at >= w.minutes AND at < w.hours
        UNION ALL
        SELECT amount FROM {spend_sum}
        WHERE name = w.name AND span = {HOUR} AND at >= w.hours AND at < w.days
        UNION ALL
        SELECT amount FROM {spend_sum} WHERE name = w.name AND span = {DAY} AND at >= w.days
        UNION ALL
        SELECT amount FROM {spend}
        WHERE name || '' = w.name AND at > w.since AND NOT is_estimate
        AND (summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount)
        UNION ALL
        SELECT -summed_amount FROM {spend}
        WHERE name || '' = w.name AND summed_at >= w.minutes AND summed_at IS NOT NULL
        AND (summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount)
        UNION ALL
        SELECT CASE WHEN e.at > w.since AND l.held THEN e.amount ELSE 0 END
            - CASE WHEN e.at >= w.minutes AND e.summed_at = e.at AND e.summed_amount = e.amount THEN e.amount ELSE 0 END
        FROM (
            SELECT job_id, at, amount, summed_at, summed_amount FROM {spend} WHERE name = w.name AND is_estimate OFFSET 0
        ) e
        LEFT JOIN LATERAL (SELECT true AS held FROM {lease} WHERE job_id = e.job_id OFFSET 0) l ON true
    ) p (amount)
    OFFSET 0
) s
UNION ALL
SELECT NULL, s.amount, s.at, s.name, s.job_id::text
FROM unnest(%(asked)s::text[], %(askers)s::uuid[]) AS a (name, job_id)
CROSS JOIN LATERAL (
    SELECT name, at, amount, job_id FROM {spend} WHERE name = a.name AND job_id = a.job_id AND is_estimate OFFSET 0
) s;

-- name: oldest
SELECT s.at, s.amount, s.job_id::text, s.is_estimate FROM {spend} s
WHERE s.name = %(name)s::text AND s.at > %(since)s::timestamptz
AND (NOT s.is_estimate OR (SELECT true FROM {lease} WHERE job_id = s.job_id))
ORDER BY s.at LIMIT %(most)s::int;

-- name: under_way
-- Walks the leases, which are few.
SELECT coalesce(sum(s.amount), 0)
FROM {lease} l
CROSS JOIN LATERAL (
    SELECT amount FROM {spend} WHERE name = %(name)s::text AND job_id = l.job_id AND is_estimate OFFSET 0
) s
WHERE l.job_id <> ALL (%(askers)s::uuid[]);

-- name: budgets
-- The names with spends: one index seek for each, no matter how many rows it has.
WITH RECURSIVE known (name) AS (
    SELECT min(spend.name) FROM {spend} AS spend
    UNION ALL
    SELECT (SELECT min(spend.name) FROM {spend} AS spend WHERE spend.name > known.name)
    FROM known
    WHERE known.name IS NOT NULL
)

SELECT known.name FROM known WHERE known.name IS NOT NULL LIMIT %(most)s::bigint;
