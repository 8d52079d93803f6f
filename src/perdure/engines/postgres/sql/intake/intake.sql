-- name: insert_one
-- One job without key or time, the most common case: returns a row if the job is new.
WITH new AS (
    INSERT INTO {job} (id, kind, queue, priority, args, created_at, max_attempts, crash_limit, tags, meta, parent_id,
                       settings)
    VALUES (%(id)s::text::uuid, %(kind)s::text, %(queue)s::text, %(priority)s::text::int, %(args)s::text,
            coalesce(%(now)s::text::timestamptz, now()), %(max_attempts)s::text::int, %(crash_limit)s::text::int,
            %(tags)s::text::text[], %(meta)s::text, %(parent)s::text::uuid, %(settings)s::text)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, priority, created_at
)
INSERT INTO {ready} (queue, priority, job_id, since) SELECT queue, priority, id, created_at FROM new
RETURNING 'new';

-- name: insert_plain
-- Jobs without a key that are ready at once. What is the same for all of them is sent once, not in an array. All
-- parameters are text, for every driver, and so are the answers.
WITH new AS (
    INSERT INTO {job} (id, kind, queue, priority, args, created_at, max_attempts, crash_limit, tags, meta, parent_id,
                       settings)
    SELECT i.id, coalesce(i.kind, %(kind)s::text), coalesce(i.queue, %(queue)s::text),
           coalesce(i.priority, %(priority)s::text::int), i.args,
           coalesce(%(now)s::text::timestamptz, now()), coalesce(i.max_attempts, %(max_attempts)s::text::int),
           coalesce(i.crash_limit, %(crash_limit)s::text::int), coalesce(i.tags, %(tags)s::text)::text[],
           coalesce(i.meta, %(meta)s::text), %(parent)s::text::uuid, coalesce(i.settings, %(settings)s::text)
    FROM unnest(
        %(ids)s::text::uuid[], %(args)s::text::text[], %(kinds)s::text::text[], %(queues)s::text::text[],
        %(priorities)s::text::int[], %(max_attempts_list)s::text::int[], %(crash_limits)s::text::int[],
        %(tags_list)s::text::text[], %(metas)s::text::text[], %(settings_list)s::text::text[]
    ) AS i (id, args, kind, queue, priority, max_attempts, crash_limit, tags, meta, settings)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, priority, created_at
), entered AS (
    INSERT INTO {ready} (queue, priority, job_id, since) SELECT queue, priority, id, created_at FROM new
)
SELECT (SELECT count(*) FROM new)::text,
       CASE WHEN (SELECT count(*) FROM new) < %(count)s::text::int
            THEN (SELECT coalesce(string_agg(id::text, ','), '') FROM new) END;

-- name: insert_full
-- Jobs, some of them with a key, a ref or a time. Returns one row for each job that did not become a new one: its
-- number, whether its id or ref is known, whether it took the key all the same, and the holder of the key, if it can be
-- seen. `beside_holder`: a job that need not hold its key yet is stored although another job holds it.
WITH input AS MATERIALIZED (
    SELECT i.*, t.due_at, t.due_at > coalesce(%(now)s::text::timestamptz, now()) AS is_later,
           sha256(convert_to(i.unique_key, 'UTF8')) AS hold,
           CASE WHEN t.due_at > coalesce(%(now)s::text::timestamptz, now()) THEN 'scheduled' ELSE 'ready' END
               = ANY (string_to_array(i.unique_states, ',')) AS must_hold
    FROM unnest(
        %(ids)s::text::uuid[], %(args)s::text::text[], %(kinds)s::text::text[], %(queues)s::text::text[],
        %(priorities)s::text::int[], %(max_attempts_list)s::text::int[], %(crash_limits)s::text::int[],
        %(tags_list)s::text::text[], %(metas)s::text::text[], %(run_ats)s::text::timestamptz[],
        %(delays)s::text::float8[], %(unique_keys)s::text::text[], %(unique_states)s::text::text[],
        %(unique_dead_fors)s::text::float8[], %(fair_keys)s::text::text[], %(settings_list)s::text::text[],
        %(refs)s::text::text[]
    ) WITH ORDINALITY AS i (id, args, kind, queue, priority, max_attempts, crash_limit, tags, meta, run_at, delay,
                            unique_key, unique_states, unique_dead_for, fair_key, settings, ref, number)
    CROSS JOIN LATERAL (
        SELECT coalesce(i.run_at, coalesce(%(now)s::text::timestamptz, now()) + make_interval(secs => i.delay))
            AS due_at
    ) t
), known AS MATERIALIZED (
    SELECT i.id FROM input i CROSS JOIN LATERAL (SELECT FROM {job} j WHERE j.id = i.id OFFSET 0) j
    UNION
    SELECT i.id FROM input i CROSS JOIN LATERAL (SELECT FROM {job} j WHERE j.ref = i.ref OFFSET 0) j
), seen AS MATERIALIZED (
    SELECT h.key, h.job_id FROM input i CROSS JOIN LATERAL (
        SELECT key, job_id FROM {unique_hold} h
        WHERE h.key = i.hold AND (expires_at IS NULL OR expires_at > coalesce(%(now)s::text::timestamptz, now()))
        OFFSET 0
    ) h
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT hold, id FROM input
    WHERE must_hold AND id NOT IN (SELECT id FROM known) AND hold NOT IN (SELECT key FROM seen)
    ORDER BY hold
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.expires_at <= coalesce(%(now)s::text::timestamptz, now())
    RETURNING key
), new AS (
    INSERT INTO {job} (id, kind, queue, priority, args, created_at, run_at, max_attempts, crash_limit,
                       unique_key, unique_states, unique_dead_for, tags, meta, parent_id, fair_key, settings, ref)
    SELECT id, coalesce(kind, %(kind)s::text), coalesce(queue, %(queue)s::text),
           coalesce(priority, %(priority)s::text::int), args, coalesce(%(now)s::text::timestamptz, now()), due_at,
           coalesce(max_attempts, %(max_attempts)s::text::int), coalesce(crash_limit, %(crash_limit)s::text::int),
           unique_key, unique_states, make_interval(secs => unique_dead_for),
           coalesce(tags, %(tags)s::text)::text[], coalesce(meta, %(meta)s::text), %(parent)s::text::uuid, fair_key,
           coalesce(settings, %(settings)s::text), ref
    FROM input
    WHERE id NOT IN (SELECT id FROM known)
      AND (hold IS NULL OR CASE WHEN must_hold THEN hold IN (SELECT key FROM held)
                                ELSE %(beside_holder)s::text::bool OR hold NOT IN (SELECT key FROM seen) END)
    ORDER BY number
    ON CONFLICT DO NOTHING
    RETURNING id, queue, priority, created_at, run_at, fair_key
), entering AS MATERIALIZED (
    SELECT queue, priority, id AS job_id, 0 AS failures, 0 AS crashes, created_at AS since, NULL AS reason, fair_key,
           row_number() OVER () AS place, NULL::bigint AS seq, NULL::timestamptz AS due_at
    FROM new WHERE run_at IS NULL OR run_at <= created_at
), {line_up}, parked AS (
    INSERT INTO {parked} (job_id, queue, priority, state, reason, due_at, since, parked_at, behind)
    SELECT id, queue, priority, 'scheduled', {REASON_ENQUEUED}, run_at, run_at, created_at, (SELECT last_value FROM {ready_seq})
    FROM new
    WHERE run_at > created_at
)
SELECT number::text, (id IN (SELECT id FROM known))::text,
       coalesce(hold IN (SELECT key FROM held), false)::text,
       (SELECT s.job_id::text FROM seen s WHERE s.key = hold LIMIT 1)
FROM input WHERE id NOT IN (SELECT id FROM new)
ORDER BY number;

-- name: add_plan
INSERT INTO {plan} (job_id, number, document)
SELECT %(id)s::text::uuid, i.number - 1, i.document
FROM unnest(%(documents)s::text::text[]) WITH ORDINALITY AS i (document, number);

-- name: kinds
-- The kinds of the jobs with these ids.
SELECT id::text, kind FROM {job} WHERE id = ANY (%(ids)s::text::uuid[]);

-- name: by_refs
-- The jobs that have these refs.
SELECT ref, id::text, kind FROM {job} WHERE ref = ANY (%(refs)s::text::text[]);

-- name: holder
-- The current holder of a key, in a separate snapshot.
SELECT job_id::text FROM {unique_hold}
WHERE key = sha256(convert_to(%(key)s::text, 'UTF8'))
  AND (expires_at IS NULL OR expires_at > coalesce(%(now)s::text::timestamptz, now()));

-- name: lock_holder
-- As above, locked until the transaction ends.
SELECT job_id::text FROM {unique_hold}
WHERE key = sha256(convert_to(%(key)s::text, 'UTF8'))
  AND (expires_at IS NULL OR expires_at > coalesce(%(now)s::text::timestamptz, now()))
FOR UPDATE;

-- name: let_go
-- Release a key that a job holds, so that another job can take it.
DELETE FROM {unique_hold} WHERE key = sha256(convert_to(%(key)s::text, 'UTF8')) AND job_id = %(id)s::text::uuid;

-- name: replace
-- Rewrite a waiting job. Without a time of its own, the new job leaves the waiting one where it is; a job that keeps
-- its priority and its fair key keeps its place in the queue. The progress made with the old arguments is forgotten.
-- Returns nothing if the job is neither ready nor parked.
WITH newcomer AS MATERIALIZED (
    SELECT t.now, t.due_at, t.due_at <= t.now AS is_now
    FROM (
        SELECT m.now, coalesce(%(run_at)s::text::timestamptz,
                               m.now + make_interval(secs => %(delay)s::text::float8)) AS due_at
        FROM (SELECT coalesce(%(now)s::text::timestamptz, now()) AS now) m
    ) t
), kept AS MATERIALIZED (
    SELECT r.job_id FROM {ready} r CROSS JOIN newcomer n
    WHERE r.job_id = %(id)s::text::uuid AND n.is_now IS NOT FALSE AND r.priority = %(priority)s::text::int
      AND r.fair_key IS NOT DISTINCT FROM %(fair_key)s::text
    FOR UPDATE OF r
), moved AS (
    DELETE FROM {ready} r USING newcomer n
    WHERE r.job_id = %(id)s::text::uuid AND r.job_id NOT IN (SELECT job_id FROM kept)
    RETURNING r.job_id, r.queue, r.failures, r.crashes, r.since, r.reason, n.due_at, n.now, n.is_now
), parked AS (
    INSERT INTO {parked} (job_id, queue, priority, state, reason, due_at, failures, crashes, since, parked_at, behind)
    SELECT job_id, queue, %(priority)s::text::int, 'scheduled', {REASON_ENQUEUED}, due_at, failures, crashes, due_at, now,
           (SELECT last_value FROM {ready_seq})
    FROM moved WHERE NOT is_now
), retimed AS (
    UPDATE {parked} p
    SET priority = %(priority)s::text::int, due_at = coalesce(n.due_at, p.due_at),
        since = CASE WHEN p.state = 'scheduled' THEN coalesce(n.due_at, p.since) ELSE p.since END
    FROM newcomer n
    WHERE p.job_id = %(id)s::text::uuid AND n.is_now IS NOT TRUE
    RETURNING p.job_id
), woken AS (
    DELETE FROM {parked} p USING newcomer n
    WHERE p.job_id = %(id)s::text::uuid AND n.is_now
    RETURNING p.job_id, p.queue, p.failures, p.crashes, least(p.since, n.now) AS since
), entering AS MATERIALIZED (
    SELECT e.*, %(priority)s::text::smallint AS priority, %(fair_key)s::text AS fair_key, 1 AS place,
           NULL::bigint AS seq, NULL::timestamptz AS due_at
    FROM (
        SELECT queue, job_id, failures, crashes, since, reason FROM moved WHERE is_now IS NOT FALSE
        UNION ALL SELECT queue, job_id, failures, crashes, since, NULL FROM woken
    ) e
), {line_up}, found AS (
    SELECT job_id FROM kept UNION ALL SELECT job_id FROM moved
    UNION ALL SELECT job_id FROM retimed UNION ALL SELECT job_id FROM woken
), forgotten AS (
    DELETE FROM {step} s USING found f WHERE s.job_id = f.job_id
)
UPDATE {job} j
SET args = %(args)s::text, cursor = NULL, gates_passed = NULL, priority = %(priority)s::text::int,
    fair_key = %(fair_key)s::text, run_at = coalesce(n.due_at, j.run_at), settings = %(settings)s::text,
    max_attempts = %(max_attempts)s::text::int, crash_limit = %(crash_limit)s::text::int
FROM newcomer n
WHERE j.id IN (SELECT job_id FROM found)
RETURNING j.id::text;

-- name: is_beyond_reach
-- Whether a job runs or has ended, so that its arguments can no longer be changed.
SELECT (EXISTS (SELECT FROM {lease} WHERE job_id = %(id)s::text::uuid)
        OR EXISTS (SELECT FROM {finished} WHERE job_id = %(id)s::text::uuid))::text;

-- name: notify
-- Notifies workers when the surrounding transaction commits.
SELECT pg_notify(%(channel)s::text, %(queue)s::text);
