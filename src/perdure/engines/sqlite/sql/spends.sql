-- name: totals
-- What was spent under each name since each instant, in the order of the rows.
SELECT CAST(json_group_array((
    SELECT TOTAL(spend.amount) FROM {spend} AS spend WHERE spend.name = row.value ->> 0 AND spend.at > row.value ->> 1
)) AS BLOB)
FROM json_each(:rows) AS row;

-- name: estimates
SELECT CAST(json_group_array(json_array(spend.at, spend.amount, spend.job_id, spend.is_estimate)) AS BLOB)
FROM json_each(:askers) AS row
CROSS JOIN {spend} AS spend ON spend.name = :name AND spend.job_id = row.value AND spend.is_estimate = 1;

-- name: oldest
SELECT CAST(json_group_array(json_array(at, amount, job_id, is_estimate)) AS BLOB)
FROM (
    SELECT at, amount, job_id, is_estimate FROM {spend} WHERE name = :name AND at > :since ORDER BY at LIMIT :most
);

-- name: under_way
-- Along the leases, which are few; estimates stay where a handler never says what it has spent.
SELECT TOTAL(spend.amount)
FROM {lease} AS lease
CROSS JOIN {spend} AS spend ON spend.name = :name AND spend.job_id = lease.job_id AND spend.is_estimate = 1
WHERE lease.job_id NOT IN (SELECT value FROM json_each(:askers));
