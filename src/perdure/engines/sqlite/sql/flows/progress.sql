-- name: save
-- A claim that was lost matches no lease, and nothing is written for it.
INSERT INTO {progress} (job_id, current, total, note, at)
SELECT lease.job_id, row.value ->> 2, row.value ->> 3, row.value ->> 4, row.value ->> 5
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
WHERE true
ON CONFLICT (job_id) DO UPDATE SET
    current = excluded.current, total = excluded.total, note = excluded.note, at = excluded.at;

-- name: progress
SELECT current, total, note, at FROM {progress} WHERE job_id = :job_id;
