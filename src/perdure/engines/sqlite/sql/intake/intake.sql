-- name: add_job
-- An id or a ref that is stored already changes nothing.
INSERT INTO {job} (
    id, kind, queue, priority, args, created_at, run_at, max_attempts, crash_limit,
    unique_key, unique_states, unique_dead_for, tags, meta, turn, fair_key, settings, ref
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: add_plan
INSERT INTO {plan} (job_id, number, document)
SELECT :job_id, row.key, row.value FROM json_each(:documents) AS row;

-- name: add_ready
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason, fair_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_parked
INSERT INTO {parked} (job_id, queue, state, reason, due_at, failures, crashes, since, parked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_alike_jobs
-- A whole batch in one step: every step releases the interpreter's lock and must reacquire it. What the jobs share is
-- bound once, and only ids and arguments come in the document.
INSERT INTO {job} (id, kind, queue, priority, args, created_at, max_attempts, crash_limit, tags, meta, settings, turn)
SELECT
    row.value ->> 0, :kind, :queue, :priority, row.value ->> 1, :now, :max_attempts, :crash_limit, :tags, :meta,
    :settings, :turn + row.key
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT DO NOTHING;

-- name: add_alike_ready
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason)
SELECT :queue, :priority, :turn + row.key, row.value, 0, 0, :now, {REASON_ENQUEUED}
FROM json_each(:ids) AS row
WHERE row.value IS NOT NULL;

-- name: add_jobs
-- As above, for jobs that share little.
INSERT INTO {job} (
    id, kind, queue, priority, args, created_at, run_at, max_attempts, crash_limit, tags, meta, settings, turn, fair_key
)
SELECT
    row.value ->> 0, row.value ->> 1, row.value ->> 2, row.value ->> 3, row.value ->> 4, :now, row.value ->> 5,
    row.value ->> 6, row.value ->> 7, row.value ->> 8, row.value ->> 9, row.value ->> 10,
    COALESCE(row.value ->> 11, :turn + row.key), row.value ->> 12
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT DO NOTHING;

-- name: kinds
-- The kinds of the jobs with these ids.
SELECT job.id, job.kind FROM json_each(:ids) AS asked CROSS JOIN {job} AS job WHERE job.id = asked.value;

-- name: by_ref
SELECT id, kind FROM {job} WHERE ref = :ref;

-- name: placeless
-- Every job stored before has its place; those just added have none yet.
SELECT row.value ->> 0
FROM json_each(:rows) AS row
WHERE
    NOT EXISTS (SELECT 1 FROM {finished} WHERE job_id = row.value ->> 0)
    AND NOT EXISTS (
        SELECT 1 FROM {job} AS job CROSS JOIN {ready} AS ready
        WHERE
            job.id = row.value ->> 0
            AND ready.queue = job.queue AND ready.priority = job.priority AND ready.turn = job.turn
            AND ready.job_id = job.id
    )
    AND NOT EXISTS (SELECT 1 FROM {lease} WHERE job_id = row.value ->> 0)
    AND NOT EXISTS (SELECT 1 FROM {parked} WHERE job_id = row.value ->> 0);

-- name: add_all_ready
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason, fair_key)
SELECT
    row.value ->> 2, row.value ->> 3, COALESCE(row.value ->> 11, :turn + row.key), row.value ->> 0, 0, 0, :now,
    {REASON_ENQUEUED}, row.value ->> 12
FROM json_each(:rows) AS row
WHERE row.type = 'array' AND (row.value ->> 5 IS NULL OR row.value ->> 5 <= :now);

-- name: add_all_parked
INSERT INTO {parked} (job_id, queue, state, reason, due_at, failures, crashes, since, parked_at)
SELECT
    row.value ->> 0, row.value ->> 2, 'scheduled', {REASON_ENQUEUED}, row.value ->> 5, 0, 0, row.value ->> 5, :now
FROM json_each(:rows) AS row
WHERE row.type = 'array' AND row.value ->> 5 > :now;

-- name: lock
-- Takes the write lock, so that later reads stay valid until the end of the transaction.
UPDATE {counter} SET value = value WHERE name = 'token';

-- name: front_turn
SELECT turn FROM {ready} WHERE queue = :queue AND priority = :priority ORDER BY turn, job_id LIMIT 1;

-- name: last_fair_turn
SELECT turn FROM {ready}
WHERE queue = :queue AND priority = :priority AND fair_key = :key
ORDER BY turn DESC LIMIT 1;

-- name: note_fair_turns
UPDATE {job} SET turn = row.value FROM json_each(:turns) AS row WHERE {job}.id = row.key;

-- name: take_key
-- The primary key decides who holds it; only a hold past its time is taken over.
INSERT INTO {unique_hold} (key, job_id) VALUES (:key, :job_id)
ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL WHERE expires_at <= :now;

-- name: key_holder
SELECT job_id FROM {unique_hold} WHERE key = :key AND (expires_at IS NULL OR expires_at > :now);

-- name: drop_key
DELETE FROM {unique_hold} WHERE key = :key AND job_id = :job_id;

-- name: pass_key_on
UPDATE {unique_hold} SET job_id = :job_id, expires_at = NULL WHERE key = :key;

-- name: waiting_place
-- A waiting job can be given new arguments; a running or finished one is in neither of these tables.
SELECT
    waiting.name, waiting.queue, waiting.priority, waiting.fair_key, waiting.reason, waiting.failures,
    waiting.crashes, waiting.since, job.unique_key, job.unique_states
FROM (
    SELECT
        'ready' AS name, ready.queue, ready.priority, ready.fair_key, ready.reason, ready.failures, ready.crashes,
        ready.since
    FROM {job} AS job CROSS JOIN {ready} AS ready
    WHERE
        job.id = :job_id
        AND ready.queue = job.queue AND ready.priority = job.priority AND ready.turn = job.turn
        AND ready.job_id = job.id
    UNION ALL
    SELECT 'parked', queue, NULL, NULL, {REASON_ENQUEUED}, failures, crashes, since FROM {parked} WHERE job_id = :job_id
) AS waiting
CROSS JOIN {job} AS job ON job.id = :job_id;

-- name: leave_ready
DELETE FROM {ready}
WHERE (queue, priority, turn, job_id) = (SELECT queue, priority, turn, id FROM {job} WHERE id = :job_id);

-- name: replace_job
-- The checkpoint of the old arguments does not apply to the new ones.
UPDATE {job} SET
    args = :args, cursor = NULL, gates_passed = NULL, priority = :priority, run_at = COALESCE(:run_at, run_at),
    turn = COALESCE(:turn, turn), fair_key = :fair_key, settings = :settings, max_attempts = :max_attempts,
    crash_limit = :crash_limit
WHERE id = :job_id;

-- name: forget_steps
DELETE FROM {step} WHERE job_id = :job_id;

-- name: postpone
UPDATE {parked} SET due_at = :due, since = CASE WHEN state = 'scheduled' THEN :due ELSE since END
WHERE job_id = :job_id;

-- name: leave_parked
DELETE FROM {parked} WHERE job_id = :job_id;

-- name: stored
SELECT 1 FROM {job} WHERE id = :job_id;
