-- name: enter
-- Make schedules or change them, in the order of their names. The next time changes with the expression or the zone,
-- and never lies inside a pause. A schedule of the other origin does not change, and is not returned.
INSERT INTO {schedule} AS s (name, definition, origin, version, next_at, created_at, changed_at, declared_at)
SELECT i.name, i.definition, %(origin)s::text, 1, i.next_at, t.now, t.now,
       CASE WHEN %(origin)s::text = 'declared' THEN t.now END
FROM unnest(%(names)s::text[], %(definitions)s::text[], %(next_ats)s::timestamptz[]) AS i (name, definition, next_at)
CROSS JOIN (SELECT coalesce(%(now)s::timestamptz, now()) AS now) t
ORDER BY i.name COLLATE "C"
ON CONFLICT (name) DO UPDATE
SET definition = excluded.definition,
    version = s.version + CASE WHEN s.definition = excluded.definition THEN 0 ELSE 1 END,
    next_at = CASE
        WHEN s.definition::json ->> 'expression' = excluded.definition::json ->> 'expression'
         AND s.definition::json ->> 'tz' = excluded.definition::json ->> 'tz' THEN s.next_at
        WHEN s.paused_at IS NULL OR s.paused_until <= excluded.changed_at THEN excluded.next_at
        WHEN s.paused_until IS NULL THEN NULL
        WHEN excluded.next_at <= s.paused_until THEN s.next_at
        ELSE excluded.next_at
    END,
    changed_at = CASE WHEN s.definition = excluded.definition THEN s.changed_at ELSE excluded.changed_at END,
    declared_at = excluded.declared_at
WHERE s.origin = excluded.origin
RETURNING s.definition, s.origin, s.version, s.next_at, s.last_at, s.last_job_id::text, s.paused_at, s.paused_until,
          s.created_at, s.changed_at, s.declared_at;

-- name: pause
UPDATE {schedule}
SET paused_at = coalesce(%(now)s::timestamptz, now()), paused_until = %(until)s::timestamptz,
    next_at = %(next_at)s::timestamptz
WHERE name = %(name)s::text
RETURNING definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
          changed_at, declared_at;

-- name: resume
-- A schedule that is not paused does not change; after the end of a pause it has its next time already.
UPDATE {schedule}
SET paused_at = NULL, paused_until = NULL,
    next_at = CASE WHEN paused_until <= coalesce(%(now)s::timestamptz, now()) THEN next_at
                   ELSE %(next_at)s::timestamptz END
WHERE name = %(name)s::text AND paused_at IS NOT NULL
RETURNING definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
          changed_at, declared_at;

-- name: delete
DELETE FROM {schedule} WHERE name = %(name)s::text RETURNING name;

-- name: forget
-- Run after `delete`, which has waited for a process that fired the schedule: in a snapshot that shows its writes.
DELETE FROM {fire} WHERE schedule = %(name)s::text;

-- name: lock_schedule
SELECT definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
       changed_at, declared_at
FROM {schedule} WHERE name = %(name)s::text FOR UPDATE;

-- name: schedule
SELECT definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
       changed_at, declared_at
FROM {schedule} WHERE name = %(name)s::text;

-- name: schedules
SELECT definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
       changed_at, declared_at
FROM {schedule} ORDER BY name;

-- name: fires
SELECT f.schedule, f.nominal_at, f.fate, f.cause, f.at, f.job_id::text, j.queue
FROM {fire} f LEFT JOIN LATERAL (SELECT queue FROM {job} WHERE id = f.job_id OFFSET 0) j ON true
WHERE f.schedule = %(name)s::text AND f.nominal_at < coalesce(%(before)s::timestamptz, 'infinity')
ORDER BY f.nominal_at DESC LIMIT %(limit)s::int;

-- name: last_fires
SELECT f.schedule, f.nominal_at, f.fate, f.cause, f.at, f.job_id::text, j.queue
FROM {schedule} s
CROSS JOIN LATERAL (
    SELECT schedule, nominal_at, fate, cause, at, job_id FROM {fire} WHERE schedule = s.name
    ORDER BY nominal_at DESC LIMIT 1
) f
LEFT JOIN LATERAL (SELECT queue FROM {job} WHERE id = f.job_id OFFSET 0) j ON true;
