-- name: save
-- A claim that was lost matches no lease, and nothing is written for it.
INSERT INTO {line} (job_id, number, at, level, text)
SELECT
    lease.job_id,
    coalesce((SELECT max(kept.number) FROM {line} AS kept WHERE kept.job_id = lease.job_id), 0) + (row.value ->> 2),
    row.value ->> 3, row.value ->> 4, row.value ->> 5
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1;

-- name: drop_old
-- The oldest lines make room for new ones.
DELETE FROM {line}
WHERE
    job_id IN (
        SELECT lease.job_id
        FROM json_each(:rows) AS row
        CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
    )
    AND number <= (SELECT max(kept.number) FROM {line} AS kept WHERE kept.job_id = {line}.job_id) - :keep;

-- name: lines
SELECT number, at, level, text FROM {line}
WHERE job_id = :job_id AND number > :after ORDER BY number DESC LIMIT :limit;
