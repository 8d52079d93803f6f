-- name: acknowledge_plain
-- Jobs without a key that are done and leave nothing behind: the most common case. Jobs of one claim share its token,
-- and are found in one walk along the index, as far as no job of another claim lies between them: rows are locked in
-- the order of ids. A lost claim matches no row; then the written jobs are listed. One worker nearly always held them
-- all, so its name is looked up once.
WITH gone AS (
    DELETE FROM {lease} l
    USING unnest(%(tokens)s::bigint[], %(ids)s::text[]) AS i (token, ids)
    WHERE l.job_id = ANY (i.ids::uuid[]) AND l.token = i.token
    RETURNING l.job_id, l.queue, l.worker_id, l.failures, l.crashes, l.since, l.claimed_at
), one AS MATERIALIZED (
    SELECT id, name FROM {worker} WHERE id = (SELECT worker_id FROM gone LIMIT 1)
), done AS (
    INSERT INTO {finished} (job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since)
    SELECT g.job_id, g.queue, 'succeeded', {REASON_DONE}, g.claimed_at, coalesce(%(now)s::timestamptz, now()),
           CASE WHEN g.worker_id = one.id THEN one.name
                ELSE coalesce((SELECT name FROM {worker} WHERE id = g.worker_id), 'worker ' || g.worker_id) END,
           g.failures, g.crashes, g.since
    FROM gone g LEFT JOIN one ON true
)
SELECT CASE WHEN c.number < %(count)s::int THEN (SELECT array_agg(job_id::text) FROM gone) END, c.number
FROM (SELECT count(*) AS number FROM gone) c;

-- name: acknowledge_done
-- As above, with results, warnings or records of gates.
WITH gone AS (
    DELETE FROM {lease} l
    USING unnest(%(ids)s::uuid[], %(tokens)s::bigint[], %(results)s::text[], %(warnings)s::text[], %(kept)s::text[],
                 %(gates)s::text[]) AS i (id, token, result, warnings, kept_as, gates)
    WHERE l.job_id = i.id AND l.token = i.token
    RETURNING l.job_id, l.queue, l.worker_id, l.failures, l.crashes, l.since, l.claimed_at, i.result, i.warnings,
              i.kept_as, i.gates
), one AS MATERIALIZED (
    SELECT id, name FROM {worker} WHERE id = (SELECT worker_id FROM gone LIMIT 1)
), done AS (
    INSERT INTO {finished} (job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since,
                            result, warnings, kept_as, gates)
    SELECT g.job_id, g.queue, 'succeeded', CASE WHEN g.warnings IS NULL THEN {REASON_DONE} ELSE {REASON_DONE_WITH_WARNINGS} END,
           g.claimed_at, coalesce(%(now)s::timestamptz, now()),
           CASE WHEN g.worker_id = one.id THEN one.name
                ELSE coalesce((SELECT name FROM {worker} WHERE id = g.worker_id), 'worker ' || g.worker_id) END,
           g.failures, g.crashes, g.since, g.result, g.warnings, g.kept_as, g.gates
    FROM gone g LEFT JOIN one ON true
)
SELECT CASE WHEN c.number < %(count)s::int THEN (SELECT array_agg(job_id::text) FROM gone) END, c.number
FROM (SELECT count(*) AS number FROM gone) c;

-- name: acknowledge
-- Moves of every kind. `key_use` says what the new state means for the unique key: hold (or else wait, paused), keep
-- (as long as the dead do, or for good; never wait), or free. A job whose cancellation was requested does not come
-- back: it is cancelled instead, with the reason of the request, and `cancel_key_use` says what that means for its key.
-- A job keeps its place in line unless it has failed.
WITH input AS MATERIALIZED (
    SELECT i.*, sha256(convert_to(i.key, 'UTF8')) AS hold
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::bigint[], %(states)s::text[], %(reasons)s::text[], %(failures)s::int[],
        %(crashes)s::int[], %(waits)s::float8[], %(numbers)s::int[], %(error_types)s::text[], %(messages)s::text[],
        %(tracebacks)s::text[], %(results)s::text[], %(warnings)s::text[], %(notes)s::text[], %(keys)s::text[],
        %(key_uses)s::text[], %(cancel_key_uses)s::text[], %(kept_fors)s::float8[],
        %(knows_again)s::bool[], %(awaits)s::text[], %(actions)s::text[], %(passes)s::text[], %(limits)s::int[],
        %(kept)s::text[], %(priorities)s::smallint[], %(fingerprints)s::text[], %(group_kinds)s::text[],
        %(group_messages)s::text[], %(gates)s::text[]
    ) WITH ORDINALITY AS i (id, token, stated, said, failures, crashes, wait, attempt, error_type, message, traceback,
                            result, warnings, stated_note, key, stated_key_use, cancel_key_use, kept_for, known_again,
                            awaits, stated_action, passes, attempt_limit, kept_as, new_priority, fingerprint,
                            group_kind, group_message, gates, number)
), let_go AS (
    DELETE FROM {lease} l USING input i WHERE l.job_id = i.id AND l.token = i.token
    RETURNING i.*, l.queue, coalesce(i.new_priority, l.priority) AS priority, l.worker_id, l.since, l.claimed_at,
              l.cancel_why, l.cancel_by, l.seq,
              l.cancel_at IS NOT NULL AND i.stated NOT IN ('succeeded', 'dead', 'cancelled') AS called_off
), gone AS MATERIALIZED (
    SELECT l.*,
           CASE WHEN called_off THEN 'cancelled' ELSE stated END AS state,
           CASE WHEN called_off THEN {REASON_CANCELLED} ELSE said END AS reason,
           CASE WHEN called_off THEN coalesce(cancel_why, stated_note) ELSE stated_note END AS note,
           CASE WHEN called_off THEN cancel_key_use ELSE stated_key_use END AS key_use,
           CASE WHEN called_off THEN %(cancel_action)s::text ELSE stated_action END AS action
    FROM let_go l
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id, expires_at)
    SELECT hold, id, coalesce(%(now)s::timestamptz, now()) + make_interval(secs => kept_for)
    FROM gone WHERE key_use IN ('hold', 'keep') ORDER BY hold
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
), freed AS (
    DELETE FROM {unique_hold} h USING gone g WHERE g.key_use = 'free' AND h.key = g.hold AND h.job_id = g.id
), fate AS MATERIALIZED (
    SELECT g.id, g.token, g.queue, g.priority, g.failures, g.crashes, g.since, g.claimed_at, g.attempt, g.error_type,
           g.message, g.traceback, g.result, g.warnings, g.note, g.number, g.said, g.known_again, g.awaits, g.passes,
           g.cancel_by, g.action, CASE WHEN g.said <> ALL (%(faults)s::text[]) THEN g.seq END AS seq,
           g.attempt_limit, g.kept_as, g.new_priority, g.fingerprint, g.group_kind, g.group_message,
           g.gates, coalesce(w.name, 'worker ' || g.worker_id) AS worker, m.now,
           CASE WHEN m.must_wait THEN 'paused' ELSE g.state END AS state,
           CASE WHEN m.must_wait THEN %(key_held)s::text ELSE g.reason END AS reason,
           m.now + CASE WHEN m.must_wait THEN {HELD_KEY_WAIT}
                        WHEN NOT g.called_off THEN make_interval(secs => g.wait) END AS due_at
    FROM gone g
    LEFT JOIN LATERAL (SELECT name FROM {worker} WHERE id = g.worker_id OFFSET 0) w ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(%(now)s::timestamptz, now()) AS now,
               g.key_use IS NOT DISTINCT FROM 'hold' AND g.id NOT IN (SELECT job_id FROM held) AS must_wait
    ) m
), unknown_kinds AS (
    UPDATE {job} j
    SET unknown_since = CASE WHEN f.reason = %(unknown_kind)s::text THEN least(coalesce(j.unknown_since, f.now), f.now)
                             WHEN NOT f.known_again THEN j.unknown_since END,
        gates_passed = coalesce(f.passes, j.gates_passed), priority = coalesce(f.new_priority, j.priority),
        gates = CASE WHEN f.error_type IS NULL THEN coalesce(f.gates, j.gates) ELSE j.gates END
    FROM fate f
    WHERE j.id = f.id AND (f.reason = %(unknown_kind)s::text OR f.known_again OR f.passes IS NOT NULL
                           OR f.new_priority IS NOT NULL
                           OR f.gates IS NOT NULL AND f.error_type IS NULL
                              AND f.state NOT IN ('succeeded', 'dead', 'cancelled'))
), tried AS (
    INSERT INTO {attempt} (job_id, token, number, reason, worker, started_at, finished_at, error_type, message,
                           traceback, next_at, attempt_limit, fingerprint, gates)
    SELECT id, token, attempt, said, worker, claimed_at, now, error_type, message, traceback, due_at, attempt_limit,
           fingerprint, gates
    FROM fate WHERE error_type IS NOT NULL
), grouped AS (
    INSERT INTO {failure_group} (fingerprint, kind, error_type, message, first_at, last_at)
    SELECT fingerprint, min(group_kind), min(error_type), min(group_message), min(now), max(now)
    FROM fate WHERE fingerprint IS NOT NULL GROUP BY fingerprint ORDER BY fingerprint
    ON CONFLICT (fingerprint) DO NOTHING
), counted AS (
    INSERT INTO {failure_count} AS c (fingerprint, hour, shard, deaths, failures, last_at)
    SELECT fingerprint, date_trunc('hour', max(now)), mod(pg_backend_pid(), 16), count(*) FILTER (WHERE state = 'dead'),
           count(*), max(now)
    FROM fate WHERE fingerprint IS NOT NULL GROUP BY fingerprint ORDER BY fingerprint
    ON CONFLICT (fingerprint, hour, shard) DO UPDATE SET deaths = c.deaths + excluded.deaths,
        failures = c.failures + excluded.failures, last_at = greatest(c.last_at, excluded.last_at)
), entering AS MATERIALIZED (
    SELECT f.queue, f.priority, f.id AS job_id, f.failures, f.crashes, f.since, f.reason, j.fair_key, f.number AS place,
           f.seq, NULL::timestamptz AS due_at
    FROM fate f LEFT JOIN LATERAL (SELECT fair_key FROM {job} WHERE id = f.id OFFSET 0) j ON true
    WHERE f.state = 'ready'
), {line_up}, parked AS (
    INSERT INTO {parked} (job_id, queue, priority, state, reason, note, due_at, failures, crashes, since, parked_at,
                          awaits, seq, behind)
    SELECT id, queue, priority, state, reason, note, due_at, failures, crashes, since, now,
           CASE WHEN state = 'waiting' THEN awaits END, seq, (SELECT last_value FROM {ready_seq})
    FROM fate WHERE state IN ('retrying', 'waiting', 'paused')
), done AS (
    INSERT INTO {finished} (job_id, queue, state, reason, note, started_at, finished_at, worker, failures, crashes,
                            since, result, warnings, cancelled_by, kept_as, fingerprint, gates)
    SELECT id, queue, state, reason, note, claimed_at, now, worker, failures, crashes, since, result, warnings,
           CASE WHEN state = 'cancelled' THEN coalesce(cancel_by, {ACTOR_HANDLER}) END, kept_as,
           CASE WHEN state = 'dead' THEN fingerprint END, CASE WHEN error_type IS NULL THEN gates END
    FROM fate WHERE state IN ('succeeded', 'dead', 'cancelled')
), noted AS (
    INSERT INTO {audit} (at, actor, action, job_id, details)
    SELECT f.now, {ACTOR_SYSTEM}, f.action, f.id,
           jsonb_build_object('old_status', 'running', 'new_status', f.state, 'attempts', f.failures + f.crashes,
                              'max_attempts', j.max_attempts)
    FROM fate f LEFT JOIN LATERAL (SELECT max_attempts FROM {job} WHERE id = f.id OFFSET 0) j ON true
    WHERE f.action IS NOT NULL ORDER BY f.id
)
SELECT CASE WHEN c.number < %(count)s::int THEN (SELECT array_agg(id::text) FROM fate) END, c.number
FROM (SELECT count(*) AS number FROM fate) c;

-- name: wait_for_more
-- The further waits of jobs that have just parked, and the rows that lead from events to them. A job that must wait for
-- its key waits for nothing else.
WITH more AS (
    UPDATE {parked} p SET also_awaits = ARRAY(SELECT jsonb_array_elements_text(i.also::jsonb))
    FROM unnest(%(ids)s::uuid[], %(also)s::text[]) AS i (id, also)
    WHERE p.job_id = i.id AND p.state <> 'paused' RETURNING p.job_id, p.also_awaits
)
INSERT INTO {waiter} (event, job_id)
SELECT substr(a.thing, 7), m.job_id FROM more m CROSS JOIN LATERAL unnest(m.also_awaits) AS a (thing)
WHERE starts_with(a.thing, 'event:') ORDER BY 1
ON CONFLICT (event, job_id) DO NOTHING;

-- name: checkpoint
-- The leases are locked against other writers: a claim that was lost, or is being lost, writes nothing.
WITH mine AS MATERIALIZED (
    SELECT l.job_id, l.token, i.cursor
    FROM unnest(%(ids)s::uuid[], %(tokens)s::bigint[], %(cursors)s::text[]) AS i (id, token, cursor)
    JOIN {lease} l ON l.job_id = i.id AND l.token = i.token
    FOR KEY SHARE OF l
)
UPDATE {job} j SET cursor = m.cursor FROM mine m WHERE j.id = m.job_id
RETURNING j.id::text, m.token;
