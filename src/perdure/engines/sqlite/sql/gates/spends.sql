-- name: totals
-- What was spent under each name since each instant, in the order of the rows: see `spend_spans`. Spends that are not
-- in the sums in their current form are read one by one, and subtracted from the sums that hold an old form. An
-- estimate counts while a claim holds its job, and is in no sum, unless the previous release has added it: then it is
-- subtracted.
SELECT CAST(json_group_array((
    SELECT TOTAL(part.amount)
    FROM (
        SELECT spend.amount
        FROM {spend} AS spend
        WHERE
            spend.name = row.value ->> 0 AND spend.at > row.value ->> 1 AND spend.at < row.value ->> 2
            AND spend.summed_at IS spend.at AND spend.summed_amount IS spend.amount AND spend.is_estimate = 0
        UNION ALL
        SELECT minute.amount
        FROM {spend_sum} AS minute
        WHERE
            minute.name = row.value ->> 0 AND minute.span = {MINUTE}
            AND minute.at >= row.value ->> 2 AND minute.at < row.value ->> 3
        UNION ALL
        SELECT hour.amount
        FROM {spend_sum} AS hour
        WHERE
            hour.name = row.value ->> 0 AND hour.span = {HOUR}
            AND hour.at >= row.value ->> 3 AND hour.at < row.value ->> 4
        UNION ALL
        SELECT day.amount
        FROM {spend_sum} AS day
        WHERE day.name = row.value ->> 0 AND day.span = {DAY} AND day.at >= row.value ->> 4
        UNION ALL
        SELECT spend.amount
        FROM {spend} AS spend INDEXED BY {spend_unsummed}
        WHERE
            spend.name = row.value ->> 0 AND spend.at > row.value ->> 1 AND spend.is_estimate = 0
            AND (spend.summed_at IS NOT spend.at OR spend.summed_amount IS NOT spend.amount)
        UNION ALL
        SELECT -spend.summed_amount
        FROM {spend} AS spend INDEXED BY {spend_changed}
        WHERE
            spend.name = row.value ->> 0 AND spend.summed_at >= row.value ->> 2 AND spend.summed_at IS NOT NULL
            AND (spend.summed_at IS NOT spend.at OR spend.summed_amount IS NOT spend.amount)
        UNION ALL
        SELECT
            CASE
                WHEN
                    spend.at > row.value ->> 1
                    AND EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.job_id = spend.job_id)
                    THEN spend.amount
                ELSE 0.0
            END - CASE
                WHEN spend.at >= row.value ->> 2 AND spend.summed_at IS spend.at AND spend.summed_amount IS spend.amount
                    THEN spend.amount
                ELSE 0.0
            END
        FROM {spend} AS spend INDEXED BY {spend_estimate}
        WHERE spend.name = row.value ->> 0 AND spend.is_estimate = 1
    ) AS part
)) AS BLOB)
FROM json_each(:rows) AS row;

-- name: estimates
SELECT CAST(json_group_array(json_array(spend.at, spend.amount, spend.job_id, spend.is_estimate)) AS BLOB)
FROM json_each(:askers) AS row
CROSS JOIN {spend} AS spend ON spend.name = :name AND spend.job_id = row.value AND spend.is_estimate = 1;

-- name: oldest
SELECT CAST(json_group_array(json_array(at, amount, job_id, is_estimate)) AS BLOB)
FROM (
    SELECT spend.at, spend.amount, spend.job_id, spend.is_estimate
    FROM {spend} AS spend
    WHERE
        spend.name = :name AND spend.at > :since
        AND (spend.is_estimate = 0 OR EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.job_id = spend.job_id))
    ORDER BY spend.at
    LIMIT :most
);

-- name: under_way
-- Walks the leases, which are few.
SELECT TOTAL(spend.amount)
FROM {lease} AS lease
CROSS JOIN {spend} AS spend ON spend.name = :name AND spend.job_id = lease.job_id AND spend.is_estimate = 1
WHERE lease.job_id NOT IN (SELECT value FROM json_each(:askers));

-- name: budgets
-- The names with spends: one index seek for each, no matter how many rows it has.
WITH RECURSIVE known (name) AS (
    SELECT min(spend.name) FROM {spend} AS spend
    UNION ALL
    SELECT (SELECT min(spend.name) FROM {spend} AS spend WHERE spend.name > known.name)
    FROM known
    WHERE known.name IS NOT NULL
)

SELECT known.name FROM known WHERE known.name IS NOT NULL LIMIT :most;
