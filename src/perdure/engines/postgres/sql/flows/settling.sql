-- name: lock_families
-- Lock the given families and those that the end of these jobs may change, in the order of their keys: the families
-- that the jobs are children of, and those that they and their descendants have spawned. A job that may not end counts
-- if its cancellation was requested. Returns whether the parent has nothing left to wait for.
WITH RECURSIVE ending (id) AS MATERIALIZED (
    SELECT i.id
    FROM unnest(%(ids)s::uuid[], %(finals)s::bool[]) AS i (id, is_final)
    LEFT JOIN LATERAL (SELECT cancel_at FROM {lease} WHERE job_id = i.id OFFSET 0) l ON true
    WHERE i.is_final OR l.cancel_at IS NOT NULL
), tree (id) AS (
    SELECT e.id FROM ending e
    UNION
    SELECT n.job_id FROM tree t
    CROSS JOIN LATERAL (
        SELECT c.job_id FROM {family} f
        CROSS JOIN LATERAL (
            SELECT job_id FROM {child}
            WHERE parent_id = f.parent_id AND family = f.key AND fate IS NULL OFFSET 0
        ) c
        CROSS JOIN LATERAL (SELECT is_parent FROM {job} WHERE id = c.job_id OFFSET 0) j
        WHERE f.parent_id = t.id AND f.succeeded + f.failed < f.total AND j.is_parent
    ) n
), touched (parent_id, key) AS MATERIALIZED (
    SELECT c.parent_id, c.family FROM ending e
    CROSS JOIN LATERAL (SELECT parent_id, family FROM {child} WHERE job_id = e.id OFFSET 0) c
    UNION
    SELECT f.parent_id, f.key FROM tree t
    CROSS JOIN LATERAL (SELECT parent_id, key FROM {family} WHERE parent_id = t.id OFFSET 0) f
    UNION
    SELECT a.id, a.key FROM unnest(%(parents)s::uuid[], %(keys)s::text[]) AS a (id, key)
)
SELECT f.parent_id::text, f.key,
       f.succeeded + f.failed >= f.total
       OR coalesce(f.succeeded >= f.quorum OR f.total - f.failed < f.quorum, false)
FROM (SELECT t.parent_id, t.key FROM touched t ORDER BY t.parent_id, t.key COLLATE "C" OFFSET 0) o
JOIN {family} f ON f.parent_id = o.parent_id AND f.key = o.key
FOR UPDATE OF f;

-- name: ended_parents
-- Which of these jobs have ended and have children, and how they ended.
SELECT f.job_id::text, f.state FROM {finished} f
WHERE f.job_id = ANY (%(ids)s::uuid[]) AND EXISTS (SELECT FROM {family} y WHERE y.parent_id = f.job_id);

-- name: cancel_children
-- Cancel the unfinished children of these jobs in any state, and the jobs `own` in the same way: some, or all. A
-- running job is taken from its worker. Returns how many were found, which were cancelled, and which of those may have
-- children. A job that changes its state at that moment is found but not cancelled: the next statement finds it.
WITH active AS MATERIALIZED (
    SELECT c.job_id
    FROM (
        SELECT c.job_id
        FROM unnest(%(parents)s::uuid[]) AS i (id)
        CROSS JOIN LATERAL (
            SELECT key FROM {family} WHERE parent_id = i.id AND (on_end = 'cancel' OR %(regardless)s::bool) OFFSET 0
        ) f
        CROSS JOIN LATERAL (SELECT job_id FROM {child} WHERE parent_id = i.id AND family = f.key OFFSET 0) c
        UNION ALL SELECT o.id FROM unnest(%(own)s::uuid[]) AS o (id)
    ) c
    CROSS JOIN LATERAL (
        SELECT FROM (
            SELECT job_id FROM {ready} WHERE job_id = c.job_id
            UNION ALL SELECT job_id FROM {parked} WHERE job_id = c.job_id
            UNION ALL SELECT job_id FROM {lease} WHERE job_id = c.job_id
        ) p LIMIT 1
    ) p
    LIMIT %(limit)s::int
), unready AS (
    DELETE FROM {ready} WHERE job_id = ANY (ARRAY(SELECT job_id FROM active))
    RETURNING job_id, queue, failures, crashes, since, NULL::bigint AS worker_id, NULL::bigint AS token,
              NULL::timestamptz AS claimed_at, 'ready' AS state
), unparked AS (
    DELETE FROM {parked} WHERE job_id = ANY (ARRAY(SELECT job_id FROM active))
    RETURNING job_id, queue, failures, crashes, since, NULL::bigint AS worker_id, NULL::bigint AS token,
              NULL::timestamptz AS claimed_at, state
), taken AS (
    DELETE FROM {lease} WHERE job_id = ANY (ARRAY(SELECT job_id FROM active))
    RETURNING job_id, queue, failures, crashes, since, worker_id, token, claimed_at, 'running' AS state
), stopped AS MATERIALIZED (
    SELECT * FROM unready UNION ALL SELECT * FROM unparked UNION ALL SELECT * FROM taken
), revocations AS (
    INSERT INTO {revoked} (worker_id, job_id, token, why, at)
    SELECT worker_id, job_id, token, %(why)s::text, coalesce(%(now)s::timestamptz, now()) FROM taken
), done AS (
    INSERT INTO {finished} (job_id, queue, state, reason, note, started_at, finished_at, worker, failures, crashes,
                            since, cancelled_by, kept_as)
    SELECT s.job_id, s.queue, 'cancelled', {REASON_CANCELLED}, %(why)s::text, s.claimed_at,
           coalesce(%(now)s::timestamptz, now()), coalesce(w.name, 'worker ' || s.worker_id), s.failures, s.crashes,
           s.since, {ACTOR_SYSTEM},
           (SELECT k.name FROM {job} r JOIN {kind} k ON k.name = r.kind WHERE r.id = s.job_id AND k.keep IS NOT NULL)
    FROM stopped s LEFT JOIN LATERAL (SELECT name FROM {worker} WHERE id = s.worker_id OFFSET 0) w ON true
), record AS MATERIALIZED (
    SELECT s.job_id, s.state, s.failures + s.crashes AS attempts, j.is_parent, j.max_attempts, sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           'cancelled' = ANY (string_to_array(j.unique_states, ',')) AS keeps
    FROM stopped s
    CROSS JOIN LATERAL (
        SELECT is_parent, max_attempts, unique_key, unique_states FROM {job} WHERE id = s.job_id OFFSET 0
    ) j
), freed AS (
    DELETE FROM {unique_hold} h USING record r WHERE h.key = r.hold AND h.job_id = r.job_id AND NOT r.keeps
), noted AS (
    INSERT INTO {audit} (at, actor, action, job_id, details)
    SELECT coalesce(%(now)s::timestamptz, now()), {ACTOR_SYSTEM}, {ACTION_CANCEL}, r.job_id,
           jsonb_build_object('old_status', r.state, 'new_status', 'cancelled', 'attempts', r.attempts,
                              'max_attempts', r.max_attempts)
    FROM record r WHERE %(audits)s::bool ORDER BY r.job_id
)
SELECT (SELECT count(*) FROM active), array_agg(r.job_id::text), array_agg(r.job_id::text) FILTER (WHERE r.is_parent)
FROM record r;

-- name: settle
-- Count the children among these jobs that have ended, each once, and store their results. `jobs` stand for them: the
-- children themselves, or the jobs that they joined. `gone` is the error of children without a record. The record of an
-- earlier end stays, because the parent may have seen it. Returns the families whose parent has nothing left to wait
-- for, with the next link of a chain.
WITH ended AS MATERIALIZED (
    SELECT c.job_id, coalesce(f.state, 'cancelled') AS fate, f.result, f.warnings,
           CASE f.state WHEN 'succeeded' THEN NULL
                        WHEN 'dead' THEN coalesce(e.said, f.note, f.reason)
                        ELSE coalesce(f.note, %(gone)s::text, f.reason) END AS error
    FROM unnest(%(ids)s::uuid[], %(jobs)s::uuid[]) AS i (id, job)
    CROSS JOIN LATERAL (SELECT job_id FROM {child} WHERE job_id = i.id AND fate IS NULL OFFSET 0) c
    LEFT JOIN LATERAL (SELECT state, reason, note, result, warnings FROM {finished} WHERE job_id = i.job OFFSET 0) f ON true
    LEFT JOIN LATERAL (
        SELECT left(a.error_type || ': ' || a.message, {ERROR_LIMIT_CHARACTERS}) AS said
        FROM {attempt} a WHERE a.job_id = i.job ORDER BY a.token DESC LIMIT 1
    ) e ON f.state = 'dead'
    WHERE f.state IS NOT NULL OR %(gone)s::text IS NOT NULL
), recorded AS (
    UPDATE {child} c
    SET fate = e.fate, result = e.result, error = coalesce(e.error, c.error), warnings = e.warnings
    FROM ended e WHERE c.job_id = e.job_id AND c.fate IS NULL
    RETURNING c.parent_id, c.family, c.fate
), counted AS (
    UPDATE {family} f SET succeeded = f.succeeded + t.succeeded, failed = f.failed + t.failed
    FROM (
        SELECT parent_id, family, count(*) FILTER (WHERE fate = 'succeeded') AS succeeded,
               count(*) FILTER (WHERE fate <> 'succeeded') AS failed
        FROM recorded GROUP BY parent_id, family
    ) t
    WHERE f.parent_id = t.parent_id AND f.key = t.family
    RETURNING f.parent_id, f.key, f.total, f.succeeded, f.failed, f.quorum, f.next_link
)
SELECT f.parent_id::text, f.key, CASE WHEN f.succeeded = f.total THEN f.next_link END FROM counted f
WHERE f.succeeded + f.failed >= f.total OR f.succeeded >= f.quorum OR f.total - f.failed < f.quorum;

-- name: ended_joined
-- Children that joined jobs that are now final or deleted: those of some jobs, or of all.
SELECT j.child_id::text, j.job_id::text FROM {joined} j
WHERE j.is_open AND (%(ids)s::uuid[] IS NULL OR j.job_id = ANY (%(ids)s::uuid[]))
  AND (EXISTS (SELECT FROM {finished} f WHERE f.job_id = j.job_id)
       OR NOT EXISTS (SELECT FROM {job} r WHERE r.id = j.job_id))
ORDER BY j.child_id LIMIT %(limit)s::int;

-- name: close_joined
UPDATE {joined} SET is_open = false WHERE child_id = ANY (%(ids)s::uuid[]);

-- name: reopen_joined
UPDATE {joined} SET is_open = true WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING child_id::text;

-- name: lock_revived
-- Lock the families of failed children that may be requeued, in the order of their keys.
SELECT f.key
FROM (
    SELECT DISTINCT c.parent_id, c.family
    FROM unnest(%(ids)s::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT parent_id, family FROM {child} WHERE job_id = i.id AND fate IN ('dead', 'cancelled') OFFSET 0
    ) c
    ORDER BY c.parent_id, c.family OFFSET 0
) o
JOIN {family} f ON f.parent_id = o.parent_id AND f.key = o.family
FOR UPDATE OF f;

-- name: revive
-- Failed children that are requeued are not final any more. A success is final.
WITH revived AS (
    UPDATE {child} SET fate = NULL
    WHERE job_id = ANY (%(ids)s::uuid[]) AND fate IN ('dead', 'cancelled') RETURNING parent_id, family
)
UPDATE {family} f SET failed = f.failed - r.number
FROM (SELECT parent_id, family, count(*) AS number FROM revived GROUP BY parent_id, family) r
WHERE f.parent_id = r.parent_id AND f.key = r.family;

-- name: wake
-- Parked jobs become ready because what they await has come; a job that awaits something else stays parked. A job that
-- must hold its key and cannot get it waits for the key, paused; so does a job whose record has lost its key, which the
-- promoter reports. Workers are notified when the transaction commits.
WITH chosen AS MATERIALIZED (
    SELECT p.job_id, p.queue, p.priority, p.failures, p.crashes, p.since, p.seq, j.fair_key,
           sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           coalesce('ready' = ANY (string_to_array(j.unique_states, ',')), false) AS wanted
    FROM (
        SELECT id, array_agg(awaits) AS came
        FROM unnest(%(ids)s::uuid[], %(awaits)s::text[]) AS i (id, awaits) GROUP BY id ORDER BY id
    ) d
    JOIN {parked} p ON p.job_id = d.id
    CROSS JOIN LATERAL (SELECT unique_key, unique_states, fair_key FROM {job} WHERE id = d.id OFFSET 0) j
    WHERE p.state = 'waiting' AND (p.awaits = ANY (d.came) OR p.also_awaits && d.came)
    FOR UPDATE OF p
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
    SELECT c.* FROM chosen c WHERE NOT c.wanted OR c.job_id IN (SELECT job_id FROM held)
), postponed AS (
    UPDATE {parked} SET state = 'paused', reason = %(key_held)s::text, awaits = NULL, also_awaits = NULL,
        due_at = coalesce(%(now)s::timestamptz, now()) + {HELD_KEY_WAIT}
    WHERE job_id = ANY (ARRAY(SELECT c.job_id FROM chosen c WHERE c.job_id NOT IN (SELECT job_id FROM granted)))
), gone AS (
    DELETE FROM {parked} WHERE job_id = ANY (ARRAY(SELECT job_id FROM granted))
), entering AS MATERIALIZED (
    SELECT queue, priority, job_id, failures, crashes, since, %(reason)s::text AS reason, fair_key, job_id AS place, seq,
           coalesce(%(now)s::timestamptz, now()) AS due_at
    FROM granted
), {line_up}, notified AS MATERIALIZED (
    SELECT pg_notify(%(channel)s::text, l.queue) FROM (SELECT DISTINCT queue FROM granted) l
)
SELECT count(*) FROM granted WHERE (SELECT count(*) FROM notified) > 0;
