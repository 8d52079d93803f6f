-- name: succeed_plainly
-- Most jobs just succeed: all there is to say is id and token. A claim that was lost matches no lease, and nothing is
-- written for it.
INSERT INTO {finished} (job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since)
SELECT
    lease.job_id, lease.queue, 'succeeded', {REASON_DONE}, lease.claimed_at, :now,
    (SELECT name FROM {worker} WHERE id = lease.worker_id), lease.failures, lease.crashes, lease.since
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.key AND lease.token = row.value;

-- name: succeed_past_gates
-- As above, with the records of their gates, by token and id: a value that is taken whole is not parsed again.
INSERT INTO {finished} (job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since, gates)
SELECT
    lease.job_id, lease.queue, 'succeeded', {REASON_DONE}, lease.claimed_at, :now,
    (SELECT name FROM {worker} WHERE id = lease.worker_id), lease.failures, lease.crashes, lease.since, row.value
FROM json_each(:rows) AS claimed
CROSS JOIN json_each(claimed.value) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.key AND lease.token = CAST(claimed.key AS INTEGER);

-- name: succeed
INSERT INTO {finished} (
    job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since, result, warnings, kept_as,
    gates
)
SELECT
    lease.job_id, lease.queue, 'succeeded',
    CASE WHEN row.value ->> 3 IS NULL THEN {REASON_DONE} ELSE {REASON_DONE_WITH_WARNINGS} END,
    lease.claimed_at, :now, (SELECT name FROM {worker} WHERE id = lease.worker_id),
    lease.failures, lease.crashes, lease.since, row.value ->> 2, row.value ->> 3, row.value ->> 4, row.value ->> 5
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1;

-- name: end
INSERT INTO {finished} (
    job_id, queue, state, reason, note, started_at, finished_at, worker, failures, crashes, since, cancelled_by,
    kept_as, fingerprint, gates
)
SELECT
    lease.job_id, lease.queue, row.value ->> 2, row.value ->> 3, row.value ->> 4,
    lease.claimed_at, :now, (SELECT name FROM {worker} WHERE id = lease.worker_id),
    row.value ->> 5, row.value ->> 6, lease.since,
    CASE WHEN row.value ->> 2 = 'cancelled' THEN COALESCE(lease.cancel_by, {ACTOR_HANDLER}) END, row.value ->> 7,
    row.value ->> 8, row.value ->> 9
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1;

-- name: park
-- A job keeps its place in line unless it has failed.
INSERT INTO {parked} (
    job_id, queue, state, reason, note, failures, crashes, due_at, since, parked_at, awaits, also_awaits, turn
)
SELECT
    lease.job_id, lease.queue, row.value ->> 2, row.value ->> 3, row.value ->> 4,
    row.value ->> 5, row.value ->> 6, row.value ->> 7, lease.since, :now, row.value ->> 8, row.value ->> 9,
    CASE WHEN row.value ->> 10 THEN (SELECT turn FROM {job} WHERE id = lease.job_id) END
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1;

-- name: line_up
INSERT INTO {ready} (queue, priority, turn, job_id, failures, crashes, since, reason, fair_key)
SELECT
    lease.queue, job.priority, job.turn, lease.job_id, row.value ->> 5, row.value ->> 6, lease.since,
    row.value ->> 3, job.fair_key
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
CROSS JOIN {job} AS job ON job.id = lease.job_id;

-- name: note_turns
-- Jobs with a fair key get their place in another way.
UPDATE {job} SET turn = :turn + held.key
FROM (
    SELECT row.key, lease.job_id
    FROM json_each(:rows) AS row
    CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
) AS held
WHERE {job}.id = held.job_id AND {job}.fair_key IS NULL;

-- name: fair_ones
SELECT CAST(json_group_array(json_array(job.id, lease.queue, job.priority, job.fair_key)) AS BLOB)
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
CROSS JOIN {job} AS job ON job.id = lease.job_id
WHERE job.fair_key IS NOT NULL;

-- name: record_attempts
INSERT INTO {attempt} (
    job_id, token, number, reason, error_type, message, traceback, next_at, worker, started_at, finished_at,
    attempt_limit, fingerprint, gates
)
SELECT
    lease.job_id, lease.token, row.value ->> 2, row.value ->> 3, row.value ->> 4, row.value ->> 5, row.value ->> 6,
    row.value ->> 7, COALESCE((SELECT name FROM {worker} WHERE id = lease.worker_id), ''), lease.claimed_at, :now,
    row.value ->> 8, row.value ->> 9, row.value ->> 10
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1;

-- name: note_groups
INSERT INTO {failure_group} (fingerprint, kind, error_type, message, first_at, last_at)
SELECT row.value ->> 2, min(row.value ->> 3), min(row.value ->> 4), min(row.value ->> 5), :now, :now
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
GROUP BY row.value ->> 2
ON CONFLICT (fingerprint) DO UPDATE SET last_at = max(last_at, excluded.last_at);

-- name: count_failures
INSERT INTO {failure_count} (fingerprint, hour, deaths, failures)
SELECT row.value ->> 2, :now / {HOUR} * {HOUR}, sum(row.value ->> 6), count(*)
FROM json_each(:rows) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
GROUP BY row.value ->> 2
ON CONFLICT (fingerprint, hour) DO UPDATE SET
    deaths = deaths + excluded.deaths, failures = failures + excluded.failures;

-- name: stale
SELECT CAST(json_group_array(row.key) AS BLOB)
FROM json_each(:rows) AS row
WHERE
    NOT EXISTS (
        SELECT 1 FROM {lease} AS lease WHERE lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
    );

-- name: let_go
DELETE FROM {lease} WHERE job_id IN (SELECT value FROM json_each(:ids));

-- name: called_off
SELECT CAST(json_group_array(json_array(lease.job_id, lease.cancel_why)) AS BLOB)
FROM json_each(:ids) AS row
CROSS JOIN {lease} AS lease ON lease.job_id = row.value
WHERE lease.cancel_at IS NOT NULL;

-- name: note_priorities
-- Which priority a job has from now on.
UPDATE {job} SET priority = held.priority
FROM (
    SELECT lease.job_id, row.value ->> 2 AS priority
    FROM json_each(:rows) AS row
    CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
) AS held
WHERE {job}.id = held.job_id;

-- name: note_passed
-- Which start of a job has passed its gates, and the record of those it has met.
UPDATE {job} SET gates_passed = coalesce(held.start, gates_passed), gates = coalesce(held.gates, {job}.gates)
FROM (
    SELECT lease.job_id, row.value ->> 2 AS start, row.value ->> 3 AS gates
    FROM json_each(:rows) AS row
    CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
) AS held
WHERE {job}.id = held.job_id;

-- name: note_unknown_kinds
-- Since when no worker had a handler for a job; deleted once one had.
UPDATE {job} SET unknown_since = CASE WHEN held.is_unknown THEN min(coalesce(unknown_since, :now), :now) END
FROM (
    SELECT lease.job_id, row.value ->> 2 AS is_unknown
    FROM json_each(:rows) AS row
    CROSS JOIN {lease} AS lease ON lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
) AS held
WHERE {job}.id = held.job_id;
