-- name: steps
SELECT CAST(json_group_array(json_array(
    step.turn, step.job_id, step.key, step.kind, step.state, step.result, step.note, step.tries, step.due_at,
    step.begun_at, step.changed_at
)) AS BLOB)
FROM json_each(:ids) AS row CROSS JOIN {step} AS step ON step.job_id = row.value;

-- name: save
-- A claim that was lost matches no lease, and nothing is written for it. A step that is over stays as it is.
INSERT INTO {step} (job_id, key, turn, kind, state, result, note, tries, due_at, begun_at, changed_at)
SELECT
    lease.job_id, row.value ->> 2, :turn + row.key, row.value ->> 3, row.value ->> 4, row.value ->> 5, row.value ->> 6,
    row.value ->> 7, row.value ->> 8, row.value ->> 9, :now
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
WHERE true
ON CONFLICT (job_id, key) DO UPDATE SET
    kind = excluded.kind, state = excluded.state, result = excluded.result, note = excluded.note,
    tries = excluded.tries, due_at = excluded.due_at, begun_at = excluded.begun_at, changed_at = excluded.changed_at
WHERE {step}.state NOT IN ('done', {STEP_GIVEN_UP});

-- name: lost
SELECT CAST(json_group_array(row.key) AS BLOB)
FROM json_each(:rows) AS row
WHERE
    NOT EXISTS (
        SELECT 1 FROM {lease} AS lease WHERE lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
    );
