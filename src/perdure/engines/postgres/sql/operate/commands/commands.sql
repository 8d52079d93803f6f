-- name: requeue
-- Requeue finished jobs. A job that must hold its key and cannot get it is skipped.
WITH chosen AS MATERIALIZED (
    SELECT f.job_id, f.state, j.mark, j.queue, j.priority, j.fair_key, sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           coalesce('ready' = ANY (string_to_array(j.unique_states, ',')), false) AS wanted
    FROM {finished} f JOIN {job} j ON j.id = f.job_id
    WHERE f.job_id = ANY (%(ids)s::uuid[]) ORDER BY f.job_id FOR UPDATE OF f
), freed AS (
    DELETE FROM {unique_hold} h USING chosen c WHERE NOT c.wanted AND h.key = c.hold AND h.job_id = c.job_id
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT DISTINCT ON (c.hold) c.hold, c.job_id
    FROM chosen c LEFT JOIN {unique_hold} o ON o.key = c.hold AND o.job_id = c.job_id
    WHERE c.wanted AND c.hold IS NOT NULL ORDER BY c.hold, o.job_id IS NULL, c.job_id
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
), granted AS MATERIALIZED (
    SELECT * FROM chosen WHERE NOT wanted OR job_id IN (SELECT job_id FROM held)
), gone AS (
    DELETE FROM {finished} WHERE job_id = ANY (ARRAY(SELECT job_id FROM granted))
), unmarked AS (
    UPDATE {job} SET mark = NULL WHERE id = ANY (ARRAY(SELECT job_id FROM granted)) AND mark IS NOT NULL
), entering AS MATERIALIZED (
    SELECT queue, priority, job_id, 0 AS failures, 0 AS crashes, coalesce(%(now)s::timestamptz, now()) AS since,
           {REASON_REQUEUED} AS reason, fair_key, job_id AS place, NULL::bigint AS seq,
           coalesce(%(now)s::timestamptz, now()) AS due_at
    FROM granted
), {line_up}, noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'requeue', job_id,
           jsonb_build_object('before', jsonb_build_object('state', state, 'mark', mark),
                              'after', jsonb_build_object('state', 'ready'))
    FROM granted ORDER BY job_id
)
SELECT job_id::text FROM granted ORDER BY job_id;

-- name: cancel
-- Waiting jobs are cancelled at once; running jobs are asked to stop, once.
WITH unready AS (
    DELETE FROM {ready} WHERE job_id = ANY (%(ids)s::uuid[])
    RETURNING job_id, queue, 'ready' AS state, failures, crashes, since
), unparked AS (
    DELETE FROM {parked} WHERE job_id = ANY (%(ids)s::uuid[])
    RETURNING job_id, queue, state, failures, crashes, since
), asked AS (
    UPDATE {lease} SET cancel_at = coalesce(%(now)s::timestamptz, now()), cancel_why = nullif(%(why)s::text, ''),
        cancel_by = %(actor)s::text
    WHERE job_id = ANY (%(ids)s::uuid[]) AND cancel_at IS NULL RETURNING job_id, 'running' AS state
), stopped AS MATERIALIZED (
    SELECT * FROM unready UNION ALL SELECT * FROM unparked
), done AS (
    INSERT INTO {finished} (job_id, queue, state, reason, note, finished_at, failures, crashes, since, cancelled_by,
                            kept_as)
    SELECT s.job_id, s.queue, 'cancelled', {REASON_CANCELLED}, nullif(%(why)s::text, ''),
           coalesce(%(now)s::timestamptz, now()), s.failures, s.crashes, s.since, %(actor)s::text,
           (SELECT k.name FROM {job} r JOIN {kind} k ON k.name = r.kind WHERE r.id = s.job_id AND k.keep IS NOT NULL)
    FROM stopped s
), freed AS (
    DELETE FROM {unique_hold} h
    USING stopped s JOIN {job} j ON j.id = s.job_id
    WHERE h.key = sha256(convert_to(j.unique_key, 'UTF8')) AND h.job_id = s.job_id
      AND 'cancelled' <> ALL (string_to_array(j.unique_states, ','))
), touched AS MATERIALIZED (
    SELECT job_id, state FROM stopped UNION ALL SELECT job_id, state FROM asked
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'cancel', job_id,
           jsonb_build_object('before', jsonb_build_object('state', state),
                              'after', CASE WHEN state = 'running'
                                            THEN jsonb_build_object('state', 'running', 'stop_requested', true)
                                            ELSE jsonb_build_object('state', 'cancelled') END)
    FROM touched ORDER BY job_id
)
SELECT job_id::text FROM touched ORDER BY job_id;

-- name: run_now
-- Parked jobs become ready; a job that must hold its key and cannot get it does not change. Waits for a time are over;
-- limits of waits for events and children stay. A job without a place gets the place that it would have had without the
-- delay.
WITH chosen AS MATERIALIZED (
    SELECT p.job_id, p.state, p.due_at, p.queue, p.priority, p.failures, p.crashes, p.since, p.seq, p.behind, j.fair_key,
           sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           coalesce('ready' = ANY (string_to_array(j.unique_states, ',')), false) AS wanted
    FROM {parked} p JOIN {job} j ON j.id = p.job_id
    WHERE p.job_id = ANY (%(ids)s::uuid[]) ORDER BY p.job_id FOR UPDATE OF p
), freed AS (
    DELETE FROM {unique_hold} h USING chosen c WHERE NOT c.wanted AND h.key = c.hold AND h.job_id = c.job_id
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT DISTINCT ON (c.hold) c.hold, c.job_id
    FROM chosen c LEFT JOIN {unique_hold} o ON o.key = c.hold AND o.job_id = c.job_id
    WHERE c.wanted AND c.hold IS NOT NULL ORDER BY c.hold, o.job_id IS NULL, c.job_id
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
), granted AS MATERIALIZED (
    SELECT * FROM chosen WHERE NOT wanted OR job_id IN (SELECT job_id FROM held)
), gone AS (
    DELETE FROM {parked} WHERE job_id = ANY (ARRAY(SELECT job_id FROM granted))
), hurried AS (
    UPDATE {step} SET due_at = coalesce(%(now)s::timestamptz, now())
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM granted)) AND state = 'begun' AND kind IN ('call', 'sleep', 'poll')
      AND due_at > coalesce(%(now)s::timestamptz, now())
), entering AS MATERIALIZED (
    SELECT queue, priority, job_id, failures, crashes, least(since, coalesce(%(now)s::timestamptz, now())) AS since,
           {REASON_RUN_NOW} AS reason, fair_key, job_id AS place,
           CASE WHEN seq IS NULL AND fair_key IS NULL THEN behind / 1048576 * 1048576 + nextval('{fair_seq}')
                ELSE seq END AS seq,
           coalesce(%(now)s::timestamptz, now()) AS due_at
    FROM granted
), {line_up}, noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'run_now', job_id,
           jsonb_build_object('before', jsonb_build_object('state', state, 'due_at', due_at),
                              'after', jsonb_build_object('state', 'ready'))
    FROM granted ORDER BY job_id
)
SELECT job_id::text FROM granted ORDER BY job_id;

-- name: reschedule
-- For a job that never ran, limits over all attempts count from its new time. A wait for a time ends then at the
-- latest.
WITH chosen AS MATERIALIZED (
    SELECT job_id, state, due_at FROM {parked}
    WHERE job_id = ANY (%(ids)s::uuid[]) AND due_at IS NOT NULL ORDER BY job_id FOR UPDATE
), moved AS (
    UPDATE {parked} p
    SET due_at = %(due_at)s::timestamptz,
        since = CASE WHEN p.state = 'scheduled' THEN %(due_at)s::timestamptz ELSE p.since END
    FROM chosen c WHERE p.job_id = c.job_id
), hurried AS (
    UPDATE {step} SET due_at = %(due_at)s::timestamptz
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM chosen)) AND state = 'begun' AND kind IN ('call', 'sleep', 'poll')
      AND due_at > %(due_at)s::timestamptz
), recorded AS (
    UPDATE {job} j SET run_at = %(due_at)s::timestamptz FROM chosen c WHERE j.id = c.job_id AND c.state = 'scheduled'
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'reschedule', job_id,
           jsonb_build_object('before', jsonb_build_object('due_at', due_at),
                              'after', jsonb_build_object('due_at', %(due_at)s::timestamptz))
    FROM chosen ORDER BY job_id
)
SELECT job_id::text FROM chosen ORDER BY job_id;

-- name: mark
WITH before AS MATERIALIZED (
    SELECT id, mark FROM {job} WHERE id = ANY (%(ids)s::uuid[]) ORDER BY id FOR UPDATE
), marked AS (
    UPDATE {job} j SET mark = %(mark)s::text FROM before b WHERE j.id = b.id RETURNING j.id, b.mark AS was
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'mark', id,
           jsonb_build_object('before', jsonb_build_object('mark', was),
                              'after', jsonb_build_object('mark', %(mark)s::text))
    FROM marked ORDER BY id
)
SELECT id::text FROM marked ORDER BY id;

-- name: quiet
-- A worker that was asked before keeps the time of the first request.
WITH living AS MATERIALIZED (
    SELECT id, name, quiet_at FROM {worker} WHERE id = ANY (%(workers)s::bigint[]) AND dead_at IS NULL ORDER BY id FOR UPDATE
), asked AS (
    UPDATE {worker} w
    SET quiet_at = CASE WHEN %(quiet)s::bool THEN coalesce(w.quiet_at, %(now)s::timestamptz, now()) END
    FROM living l WHERE w.id = l.id
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 0, %(bulk)s::text,
           CASE WHEN %(quiet)s::bool THEN 'quiet' ELSE 'loud' END,
           jsonb_build_object('worker', name, 'worker_id', id::text,
                              'before', jsonb_build_object('quiet', quiet_at IS NOT NULL),
                              'after', jsonb_build_object('quiet', %(quiet)s::bool))
    FROM living ORDER BY id
)
SELECT id FROM living ORDER BY id;

-- name: active_children
-- The number of children of these jobs that are not final, up to a limit.
SELECT count(*) FROM (
    SELECT FROM unnest(%(ids)s::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT key FROM {family} WHERE parent_id = i.id AND succeeded + failed < total OFFSET 0
    ) f
    CROSS JOIN LATERAL (
        SELECT FROM {child} WHERE parent_id = i.id AND family = f.key AND fate IS NULL OFFSET 0
    ) c
    LIMIT %(most)s::int
) a;

-- name: delete
-- Remove jobs from their places; a running job is taken from its worker. Their records are deleted at the end, after
-- their families were updated.
WITH unready AS (
    DELETE FROM {ready} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id, 'ready' AS state
), unparked AS (
    DELETE FROM {parked} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id, state
), unfinished AS (
    DELETE FROM {finished} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id, state
), taken AS (
    DELETE FROM {lease} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id, 'running' AS state, worker_id, token
), revocations AS (
    INSERT INTO {revoked} (worker_id, job_id, token, why, at)
    SELECT worker_id, job_id, token, {JOB_DELETED}, coalesce(%(now)s::timestamptz, now()) FROM taken
), gone AS MATERIALIZED (
    SELECT job_id, state FROM unready UNION ALL SELECT job_id, state FROM unparked
    UNION ALL SELECT job_id, state FROM unfinished UNION ALL SELECT job_id, state FROM taken
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'delete', g.job_id,
           jsonb_build_object('before', jsonb_build_object('state', g.state, 'kind', j.kind))
    FROM gone g LEFT JOIN LATERAL (SELECT kind FROM {job} WHERE id = g.job_id OFFSET 0) j ON true
    ORDER BY g.job_id
)
SELECT job_id::text FROM gone ORDER BY job_id;

-- name: erase
WITH records AS (
    DELETE FROM {job} WHERE id = ANY (%(ids)s::uuid[]) RETURNING id, unique_key
), attempts AS (
    DELETE FROM {attempt} WHERE job_id = ANY (%(ids)s::uuid[])
), steps AS (
    DELETE FROM {step} WHERE job_id = ANY (%(ids)s::uuid[])
), words AS (
    DELETE FROM {progress} WHERE job_id = ANY (%(ids)s::uuid[])
), lines AS (
    DELETE FROM {line} WHERE job_id = ANY (%(ids)s::uuid[])
), waits AS (
    DELETE FROM {waiter} WHERE job_id = ANY (%(ids)s::uuid[])
), families AS (
    DELETE FROM {family} WHERE parent_id = ANY (%(ids)s::uuid[])
), children AS (
    DELETE FROM {child} WHERE parent_id = ANY (%(ids)s::uuid[])
), joins AS (
    DELETE FROM {joined} j USING {child} c WHERE c.parent_id = ANY (%(ids)s::uuid[]) AND j.child_id = c.job_id
), plans AS (
    DELETE FROM {plan} WHERE job_id = ANY (%(ids)s::uuid[])
)
DELETE FROM {unique_hold} h USING records r
WHERE h.key = sha256(convert_to(r.unique_key, 'UTF8')) AND h.job_id = r.id;

-- name: purge
WITH gone AS (
    DELETE FROM {finished} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id, state
), attempts AS (
    DELETE FROM {attempt} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), records AS (
    DELETE FROM {job} WHERE id = ANY (ARRAY(SELECT job_id FROM gone)) RETURNING id, kind, unique_key, is_parent
), steps AS (
    DELETE FROM {step} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), words AS (
    DELETE FROM {progress} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), lines AS (
    DELETE FROM {line} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), waits AS (
    DELETE FROM {waiter} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), families AS (
    DELETE FROM {family} WHERE parent_id = ANY (ARRAY(SELECT id FROM records WHERE is_parent))
), children AS (
    DELETE FROM {child} WHERE parent_id = ANY (ARRAY(SELECT id FROM records WHERE is_parent))
), joins AS (
    DELETE FROM {joined} j USING {child} c
    WHERE c.parent_id = ANY (ARRAY(SELECT id FROM records WHERE is_parent)) AND j.child_id = c.job_id
), plans AS (
    DELETE FROM {plan} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), keys AS (
    DELETE FROM {unique_hold} h USING records r
    WHERE h.key = sha256(convert_to(r.unique_key, 'UTF8')) AND h.job_id = r.id
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'purge', g.job_id,
           jsonb_build_object('before', jsonb_build_object('state', g.state, 'kind', r.kind))
    FROM gone g JOIN records r ON r.id = g.job_id ORDER BY g.job_id
)
SELECT job_id::text FROM gone ORDER BY job_id;
