-- name: steps
SELECT job_id::text, key, kind, state, result, note, tries, due_at, begun_at, changed_at
FROM {step} WHERE job_id = ANY (%(ids)s::uuid[]) ORDER BY turn;

-- name: save_steps
-- The leases are locked against other writers: a claim that was lost, or is being lost, writes nothing. Steps that are
-- done or given up do not change. Returns the steps whose claim is held, unless all are.
WITH mine AS MATERIALIZED (
    SELECT i.*
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::bigint[], %(keys)s::text[], %(kinds)s::text[], %(states)s::text[],
        %(results)s::text[], %(notes)s::text[], %(tries)s::int[], %(due_ats)s::timestamptz[],
        %(begun_ats)s::timestamptz[]
    ) WITH ORDINALITY AS i (id, token, key, kind, state, result, note, tries, due_at, begun_at, number)
    JOIN {lease} l ON l.job_id = i.id AND l.token = i.token
    FOR KEY SHARE OF l
), kept AS (
    INSERT INTO {step} AS s (job_id, key, kind, state, result, note, tries, due_at, begun_at, changed_at)
    SELECT id, key, kind, state, result, note, tries, due_at, begun_at, coalesce(%(now)s::timestamptz, now())
    FROM mine ORDER BY number
    ON CONFLICT (job_id, key) DO UPDATE
    SET kind = excluded.kind, state = excluded.state, result = excluded.result, note = excluded.note,
        tries = excluded.tries, due_at = excluded.due_at, begun_at = excluded.begun_at,
        changed_at = excluded.changed_at
    WHERE s.state NOT IN ('done', {STEP_GIVEN_UP})
)
SELECT CASE WHEN (SELECT count(*) FROM mine) < %(count)s::int THEN (SELECT array_agg(number) FROM mine) END,
       (SELECT count(*) FROM mine);
