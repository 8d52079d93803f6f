-- name: advance
-- A second process finds another next time, or another version, and matches no row; a process that read the clock
-- before it was set back has future times. A step without nominal times sets a schedule back, and deletes its latest
-- handled time; otherwise it would be set back again and again.
UPDATE {schedule}
SET
    next_at = row.value ->> 3,
    last_at = CASE
        WHEN row.value ->> 4 IS NOT NULL THEN max(COALESCE(last_at, row.value ->> 4), row.value ->> 4)
    END
FROM json_each(:rows) AS row
WHERE
    {schedule}.name = row.value ->> 0
    AND {schedule}.version = row.value ->> 1
    AND {schedule}.next_at = row.value ->> 2
    AND coalesce(row.value ->> 4 <= :now, true)
RETURNING name;

-- name: known
SELECT name FROM {schedule} WHERE name IN (SELECT value FROM json_each(:names));

-- name: recorded
-- A nominal time with a job is finished; a skipped one may still get a job, and is skipped only once.
SELECT row.key
FROM json_each(:rows) AS row
CROSS JOIN {fire} AS fire ON fire.schedule = row.value ->> 0 AND fire.nominal_at = row.value ->> 1
WHERE fire.job_id IS NOT NULL OR NOT row.value ->> 2;

-- name: unfinished
SELECT schedule.name, job.id
FROM json_each(:names) AS row
CROSS JOIN {schedule} AS schedule ON schedule.name = row.value
CROSS JOIN {job} AS job ON job.id = schedule.last_job_id
WHERE NOT EXISTS (SELECT 1 FROM {finished} WHERE job_id = job.id);

-- name: note_jobs
UPDATE {schedule} SET last_job_id = row.value ->> 1
FROM json_each(:rows) AS row
WHERE {schedule}.name = row.value ->> 0;

-- name: record
-- The key makes each row unique; the writer has looked before, and no other one writes at the same time.
INSERT INTO {fire} (schedule, nominal_at, fate, cause, at, job_id)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2, row.value ->> 3, :now, row.value ->> 4
FROM json_each(:rows) AS row WHERE true
ON CONFLICT (schedule, nominal_at) DO UPDATE SET
    fate = excluded.fate, cause = excluded.cause, at = excluded.at, job_id = excluded.job_id;
