-- name: due_schedules
-- Due schedules, the most overdue first, then the next one that is not due. There is a row with the time even if there
-- is no schedule. A hash table holds the names declared here.
SELECT t.now, s.*
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) t
LEFT JOIN LATERAL (
    (SELECT definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
            changed_at, declared_at
     FROM {schedule}
     WHERE next_at <= t.now AND (origin = 'made' OR name IN (SELECT unnest(%(declared)s::text[])))
     ORDER BY next_at LIMIT %(limit)s::int)
    UNION ALL
    (SELECT definition, origin, version, next_at, last_at, last_job_id::text, paused_at, paused_until, created_at,
            changed_at, declared_at
     FROM {schedule}
     WHERE next_at > t.now AND (origin = 'made' OR name IN (SELECT unnest(%(declared)s::text[])))
     ORDER BY next_at LIMIT 1)
) s ON true
ORDER BY s.next_at;

-- name: take
-- Apply the steps that no other process has applied, and lock their schedules, in the order of their names, until the
-- end. A step that expects nothing applies to any state. A step without firings sets a schedule back. A step to future
-- times comes from before the clock was set back.
WITH step AS MATERIALIZED (
    SELECT i.* FROM unnest(
        %(names)s::text[], %(versions)s::int[], %(expecteds)s::timestamptz[], %(next_ats)s::timestamptz[],
        %(last_ats)s::timestamptz[]
    ) AS i (name, version, expected, next_at, last_at)
), mine AS MATERIALIZED (
    SELECT s.name, s.last_job_id, p.expected, p.next_at, p.last_at
    FROM step p JOIN {schedule} s ON s.name = p.name
    WHERE p.expected IS NULL OR (
        s.version = p.version AND s.next_at = p.expected
        AND coalesce(p.last_at <= coalesce(%(now)s::timestamptz, now()), true)
    )
    ORDER BY s.name FOR UPDATE OF s
), moved AS (
    UPDATE {schedule} s
    SET next_at = m.next_at, last_at = CASE WHEN m.last_at IS NOT NULL THEN greatest(s.last_at, m.last_at) END
    FROM mine m WHERE s.name = m.name AND m.expected IS NOT NULL
)
SELECT name, last_job_id::text FROM mine;

-- name: unfinished
-- Run after `take`: in a snapshot that shows the jobs of the process that had the schedules before.
SELECT i.id::text FROM unnest(%(ids)s::uuid[]) AS i (id)
WHERE EXISTS (SELECT FROM {ready} p WHERE p.job_id = i.id)
   OR EXISTS (SELECT FROM {lease} p WHERE p.job_id = i.id)
   OR EXISTS (SELECT FROM {parked} p WHERE p.job_id = i.id);

-- name: record
-- A nominal time with a job is finished, and not returned; a skipped one may still get a job.
INSERT INTO {fire} AS f (schedule, nominal_at, fate, cause, at, job_id)
SELECT DISTINCT ON (i.schedule, i.nominal_at)
       i.schedule, i.nominal_at, i.fate, i.cause, coalesce(%(now)s::timestamptz, now()), i.job_id
FROM unnest(
    %(names)s::text[], %(nominal_ats)s::timestamptz[], %(fates)s::text[], %(causes)s::text[], %(ids)s::uuid[]
) WITH ORDINALITY AS i (schedule, nominal_at, fate, cause, job_id, number)
ORDER BY i.schedule, i.nominal_at, i.number
ON CONFLICT (schedule, nominal_at) DO UPDATE
SET fate = excluded.fate, cause = excluded.cause, at = excluded.at, job_id = excluded.job_id
    WHERE f.job_id IS NULL AND excluded.job_id IS NOT NULL
RETURNING f.schedule, f.nominal_at, f.at;

-- name: correct
-- Record the existing job in place of the new one.
UPDATE {fire} SET job_id = %(id)s::uuid WHERE schedule = %(name)s::text AND nominal_at = %(nominal_at)s::timestamptz;

-- name: remember
-- The last job, which the next overlap check uses.
UPDATE {schedule} s SET last_job_id = i.id
FROM unnest(%(names)s::text[], %(ids)s::uuid[]) AS i (name, id) WHERE s.name = i.name;

-- name: note
-- Audit entries for jobs made outside the regular times.
INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, i.action, i.id,
       jsonb_build_object('schedule', %(name)s::text)
FROM unnest(%(actions)s::text[], %(ids)s::uuid[]) AS i (action, id);
