-- name: drop_keys
DELETE FROM {unique_hold}
WHERE
    key IN (SELECT row.value ->> 0 FROM json_each(:rows) AS row)
    AND job_id IN (SELECT row.value ->> 1 FROM json_each(:rows) AS row);

-- name: take_keys
-- The primary key decides who holds it; a job may renew its own hold, and take over one past its time.
INSERT INTO {unique_hold} (key, job_id, expires_at)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
WHERE {unique_hold}.job_id = excluded.job_id OR {unique_hold}.expires_at <= :now;

-- name: denied
SELECT CAST(json_group_array(row.value ->> 1) AS BLOB)
FROM json_each(:rows) AS row
CROSS JOIN {unique_hold} AS hold ON hold.key = row.value ->> 0
WHERE hold.job_id <> row.value ->> 1;
