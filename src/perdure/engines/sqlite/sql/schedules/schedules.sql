-- name: view
SELECT
    definition, origin, version, next_at, last_at, last_job_id, paused_at, paused_until, created_at, changed_at,
    declared_at
FROM {schedule}

-- name: named
WHERE name IN (SELECT value FROM json_each(:names))

-- name: in_order
ORDER BY name

-- name: due
-- Uses the index of next times, so that schedules that are not due are not read.
INDEXED BY {schedule_next} WHERE next_at IS NOT NULL AND next_at <= :now

-- name: coming
INDEXED BY {schedule_next} WHERE next_at IS NOT NULL AND next_at > :now

-- name: ours
AND (origin = 'made' OR name IN (SELECT value FROM json_each(:declared)))

-- name: earliest
ORDER BY next_at LIMIT :limit

-- name: enter
INSERT INTO {schedule} (name, definition, origin, version, next_at, created_at, changed_at)
SELECT row.value ->> 0, row.value ->> 1, :origin, 1, row.value ->> 2, :now, :now
FROM json_each(:rows) AS row;

-- name: change
UPDATE {schedule}
SET definition = row.value ->> 1, next_at = row.value ->> 2, version = version + 1, changed_at = :now
FROM json_each(:rows) AS row
WHERE {schedule}.name = row.value ->> 0;

-- name: note_declared
UPDATE {schedule} SET declared_at = :now WHERE name IN (SELECT value FROM json_each(:names));

-- name: pause
UPDATE {schedule} SET paused_at = :now, paused_until = :until, next_at = :next_at WHERE name = :name;

-- name: resume
-- A schedule that is not paused, or whose pause is over, has its next time already.
UPDATE {schedule}
SET
    paused_at = NULL,
    paused_until = NULL,
    next_at = CASE WHEN paused_until <= :now THEN next_at ELSE :next_at END
WHERE name = :name AND paused_at IS NOT NULL;

-- name: forget
DELETE FROM {schedule} WHERE name = :name;

-- name: forget_fires
DELETE FROM {fire} WHERE schedule = :name;

-- name: fires
SELECT fire.schedule, fire.nominal_at, fire.fate, fire.cause, fire.at, fire.job_id, job.queue
FROM {fire} AS fire LEFT JOIN {job} AS job ON job.id = fire.job_id
WHERE fire.schedule = :name AND fire.nominal_at < :before
ORDER BY fire.nominal_at DESC
LIMIT :limit;

-- name: last_fires
SELECT fire.schedule, fire.nominal_at, fire.fate, fire.cause, fire.at, fire.job_id, job.queue
FROM {schedule} AS schedule
CROSS JOIN
    {fire} AS fire
    ON fire.schedule = schedule.name
    AND fire.nominal_at = (SELECT max(late.nominal_at) FROM {fire} AS late WHERE late.schedule = schedule.name)
LEFT JOIN {job} AS job ON job.id = fire.job_id;
