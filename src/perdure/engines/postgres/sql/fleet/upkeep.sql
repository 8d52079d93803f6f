-- name: promote
-- Make due jobs ready, oldest due first. A job that must hold its key and cannot get it stays parked for a while; of
-- two that want the same key, the one that already holds it goes first. A job without a place gets one by its time:
-- behind the newest number of that time, as far as it is known, and in the order of these times. Jobs in a state that
-- only a newer release knows are left alone, here and below (G10); `state || ''` keeps to the index of due times.
WITH due AS MATERIALIZED (
    SELECT job_id, queue, priority, failures, crashes, since, due_at, seq, behind
    FROM {parked}
    WHERE due_at <= coalesce(%(now)s::timestamptz, now()) AND job_id <> ALL (%(aside)s::uuid[])
      AND state || '' IN ('scheduled', 'retrying', 'waiting', 'paused')
      AND (%(only)s::uuid IS NULL OR job_id = %(only)s::uuid)
    ORDER BY due_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), record AS MATERIALIZED (
    SELECT d.*, j.fair_key, sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           'ready' = ANY (string_to_array(j.unique_states, ',')) AS wanted,
           d.seq IS NULL AND j.fair_key IS NULL AS is_new
    FROM due d LEFT JOIN LATERAL (
        SELECT unique_key, unique_states, fair_key FROM {job} WHERE id = d.job_id OFFSET 0
    ) j ON true
), drawn AS MATERIALIZED (
    SELECT array_agg(n.number ORDER BY n.number) AS numbers
    FROM (SELECT nextval('{fair_seq}') AS number FROM record WHERE is_new OFFSET 0) n
), known AS MATERIALIZED (
    SELECT c.job_id, c.queue, c.priority, c.failures, c.crashes, c.since, c.due_at, c.fair_key, c.hold, c.wanted,
           CASE WHEN c.is_new THEN greatest(m.seq, c.behind) / 1048576 * 1048576
                    + d.numbers[row_number() OVER (PARTITION BY c.is_new ORDER BY c.due_at, c.job_id)]
                ELSE c.seq END AS seq
    FROM record c CROSS JOIN drawn d
    LEFT JOIN LATERAL (
        SELECT seq FROM {seq_mark} WHERE c.is_new AND at <= c.due_at ORDER BY at DESC LIMIT 1
    ) m ON true
), freed AS (
    DELETE FROM {unique_hold} h USING known k WHERE NOT k.wanted AND h.key = k.hold AND h.job_id = k.job_id
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT DISTINCT ON (k.hold) k.hold, k.job_id
    FROM known k LEFT JOIN {unique_hold} o ON o.key = k.hold AND o.job_id = k.job_id
    WHERE k.wanted ORDER BY k.hold, o.job_id IS NULL, k.job_id
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
), denied AS MATERIALIZED (
    SELECT job_id, seq FROM known WHERE wanted AND job_id NOT IN (SELECT job_id FROM held)
), postponed AS (
    UPDATE {parked} p SET state = 'paused', reason = %(key_held)s::text, awaits = NULL, also_awaits = NULL, seq = u.seq,
        due_at = coalesce(%(now)s::timestamptz, now()) + {HELD_KEY_WAIT}
    FROM denied u WHERE p.job_id = u.job_id
), entering AS MATERIALIZED (
    SELECT queue, priority, job_id, failures, crashes, since, {REASON_DUE} AS reason, fair_key, due_at AS place, seq, due_at
    FROM known
    WHERE job_id NOT IN (SELECT job_id FROM denied)
), gone AS (
    DELETE FROM {parked} WHERE job_id = ANY (ARRAY(SELECT job_id FROM entering))
), {line_up}
SELECT queue, count(*) FROM entering GROUP BY queue;

-- name: mark_number
-- Note the newest number, if it has changed and the last mark is old enough.
INSERT INTO {seq_mark} (at, seq)
SELECT t.now, n.last_value
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) t
CROSS JOIN {ready_seq} n
LEFT JOIN LATERAL (SELECT at, seq FROM {seq_mark} WHERE at <= t.now ORDER BY at DESC LIMIT 1) m ON true
WHERE m.at IS NULL OR (m.seq <> n.last_value AND m.at <= t.now - {SEQ_MARKED_EVERY})
ON CONFLICT (at) DO NOTHING;

-- name: forget_marks
-- Expired marks, except the newest of them: all jobs that were due by then are ready.
DELETE FROM {seq_mark} WHERE at < (
    SELECT at FROM {seq_mark} WHERE at <= coalesce(%(now)s::timestamptz, now()) - {SEQ_MARKS_KEPT}
    ORDER BY at DESC LIMIT 1
);

-- name: hasten
-- The first job that waits for each of these keys, if it is among the first of all jobs that wait for a key.
UPDATE {parked} SET due_at = coalesce(%(now)s::timestamptz, now())
WHERE reason = {REASON_KEY_HELD} AND job_id = ANY (ARRAY(
    SELECT DISTINCT ON (j.unique_key) p.job_id
    FROM (
        SELECT job_id, since FROM {parked} WHERE reason = {REASON_KEY_HELD}
        ORDER BY since, job_id LIMIT {WAITING_FOR_KEYS_LOOKED_AT}
    ) p
    CROSS JOIN LATERAL (SELECT unique_key FROM {job} WHERE id = p.job_id OFFSET 0) j
    WHERE j.unique_key = ANY (%(keys)s::text[])
    ORDER BY j.unique_key, p.since, p.job_id
))
RETURNING true;

-- name: next_due
SELECT due_at, due_at - coalesce(%(now)s::timestamptz, now())
FROM {parked}
WHERE due_at IS NOT NULL AND job_id <> ALL (%(aside)s::uuid[])
  AND state || '' IN ('scheduled', 'retrying', 'waiting', 'paused')
ORDER BY due_at LIMIT 1;

-- name: overdue
SELECT job_id::text, queue, due_at FROM {parked}
WHERE due_at <= coalesce(%(now)s::timestamptz, now()) - %(by)s::interval AND job_id <> ALL (%(aside)s::uuid[])
  AND state || '' IN ('scheduled', 'retrying', 'waiting', 'paused')
ORDER BY due_at LIMIT %(limit)s::int;

-- name: orphans
-- The leases of workers that are dead or no longer registered. One walk along the key, with the living workers in a
-- hash table.
WITH page AS MATERIALIZED (
    SELECT job_id, token, queue, failures, crashes, since, claimed_at, worker_id FROM {lease}
    WHERE job_id > %(after)s::uuid AND worker_id NOT IN (SELECT w.id FROM {worker} w WHERE w.dead_at IS NULL)
    ORDER BY job_id LIMIT %(limit)s::int
)
SELECT l.job_id::text, l.token, j.kind, l.queue, j.args, l.failures, l.crashes, j.crash_limit, l.since, l.claimed_at,
       j.unique_key, j.unique_states, j.unique_dead_for, j.tags, j.meta, j.unknown_since, j.cursor,
       j.parent_id::text, j.is_parent, false, NULL, j.settings, j.ref, NULL::timestamptz, j.gates, l.worker_id,
       coalesce(w.name, 'worker ' || l.worker_id),
       coalesce(%(now)s::timestamptz, now()) - coalesce(w.beat_at, l.claimed_at)
FROM page l CROSS JOIN LATERAL (SELECT * FROM {job} WHERE id = l.job_id OFFSET 0) j
LEFT JOIN LATERAL (SELECT name, beat_at FROM {worker} WHERE id = l.worker_id OFFSET 0) w ON true
ORDER BY l.job_id;

-- name: old
-- Expired jobs, oldest first, queue by queue along the index.
WITH RECURSIVE kept (state, until) AS MATERIALIZED (
    SELECT k.state, coalesce(%(now)s::timestamptz, now()) - make_interval(secs => k.seconds)
    FROM unnest(%(states)s::text[], %(seconds)s::float8[]) AS k (state, seconds)
), spot (state, queue) AS (
    (SELECT state, queue FROM {finished} ORDER BY state, queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM spot s CROSS JOIN LATERAL (
        SELECT state, queue FROM {finished} f WHERE (f.state, f.queue) > (s.state, s.queue)
        ORDER BY f.state, f.queue LIMIT 1
    ) n
)
SELECT f.job_id::text
FROM spot s JOIN kept k ON k.state = s.state CROSS JOIN LATERAL (
    SELECT job_id FROM {finished}
    WHERE state = s.state AND queue = s.queue AND finished_at < k.until
    ORDER BY finished_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
) f
LIMIT %(limit)s::int;

-- name: finished_queues
SELECT n.queue FROM (
    WITH RECURSIVE spot (queue) AS (
        (SELECT queue FROM {finished} WHERE state = %(state)s::text ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT n.queue FROM spot s CROSS JOIN LATERAL (
            SELECT queue FROM {finished} f WHERE f.state = %(state)s::text AND f.queue > s.queue
            ORDER BY f.queue LIMIT 1
        ) n
    )
    SELECT queue FROM spot
) n;

-- name: old_with_kind
-- Expired jobs of one state and queue from a place on, with their kinds.
SELECT f.job_id::text, f.finished_at, j.kind, f.kept_as
FROM {finished} f CROSS JOIN LATERAL (SELECT kind FROM {job} WHERE id = f.job_id OFFSET 0) j
WHERE f.state = %(state)s::text AND f.queue = %(queue)s::text
  AND f.finished_at < coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(seconds)s::float8)
  AND f.finished_at >= coalesce(%(after)s::timestamptz, '-infinity')
  AND (f.finished_at, f.job_id) > (coalesce(%(after)s::timestamptz, '-infinity'), %(after_id)s::uuid)
ORDER BY f.finished_at, f.job_id LIMIT %(limit)s::int FOR UPDATE OF f SKIP LOCKED;

-- name: old_of_kind
-- Jobs of a kind with its own retention.
SELECT job_id::text FROM {finished}
WHERE kept_as = %(kind)s::text AND state = %(state)s::text
  AND finished_at < coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(seconds)s::float8)
ORDER BY finished_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED;

-- name: note_kinds
UPDATE {finished} f SET kept_as = i.kind
FROM unnest(%(ids)s::uuid[], %(kinds)s::text[]) AS i (id, kind) WHERE f.job_id = i.id;

-- name: forget_jobs
-- Delete finished jobs with all that belongs to them.
WITH gone AS (
    DELETE FROM {finished} WHERE job_id = ANY (%(ids)s::uuid[]) RETURNING job_id
), attempts AS (
    DELETE FROM {attempt} WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone))
), records AS (
    DELETE FROM {job} WHERE id = ANY (ARRAY(SELECT job_id FROM gone)) RETURNING id, unique_key, is_parent
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
)
SELECT count(*) FROM gone;

-- name: last_return
-- By queue and state; the times of all other parked jobs are not looked at.
SELECT max(c.due_at) FROM (
    SELECT due_at FROM {parked} WHERE state = 'retrying' AND queue = %(queue)s::text AND reason = %(crashed)s::text
    OFFSET 0
) c;

-- name: forget_workers
-- Nearly always there are none; then `lease`, with all its dead rows, is not read.
WITH old AS MATERIALIZED (
    SELECT id FROM {worker} WHERE dead_at < coalesce(%(now)s::timestamptz, now()) - {DEAD_WORKERS_KEPT}
)
DELETE FROM {worker} w
WHERE w.id IN (SELECT id FROM old)
  AND w.id NOT IN (SELECT l.worker_id FROM {lease} l WHERE EXISTS (SELECT FROM old));

-- name: forget_revoked
-- Entries for workers that never asked again.
DELETE FROM {revoked} WHERE at < coalesce(%(now)s::timestamptz, now()) - {DEAD_WORKERS_KEPT};

-- name: forget_fires
-- A backfilled time is kept as long as the others, so that a repeated backfill does not make its job twice.
DELETE FROM {fire} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {fire}
    WHERE nominal_at <= coalesce(%(now)s::timestamptz, now()) - {NOMINAL_TIMES_KEPT}
      AND at <= coalesce(%(now)s::timestamptz, now()) - {NOMINAL_TIMES_KEPT}
    ORDER BY nominal_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
));

-- name: redate_finished
-- Redate jobs that ended in the future, because the clock was set back: they, and the unique keys of the dead ones, are
-- kept no longer than others.
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce(%(now)s::timestamptz, now()) AS now
), spot (state, queue) AS (
    (SELECT state, queue FROM {finished} ORDER BY state, queue LIMIT 1)
    UNION ALL
    SELECT n.state, n.queue FROM spot s CROSS JOIN LATERAL (
        SELECT state, queue FROM {finished} f WHERE (f.state, f.queue) > (s.state, s.queue)
        ORDER BY f.state, f.queue LIMIT 1
    ) n
), chosen AS MATERIALIZED (
    SELECT f.job_id, f.finished_at - t.now AS ahead
    FROM t CROSS JOIN spot s CROSS JOIN LATERAL (
        SELECT job_id, finished_at FROM {finished}
        WHERE state = s.state AND queue = s.queue AND finished_at > t.now + %(slack)s::interval
          AND s.state IN ('succeeded', 'dead', 'cancelled')
        ORDER BY finished_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
    ) f
    LIMIT %(limit)s::int
), holds AS (
    UPDATE {unique_hold} h SET expires_at = h.expires_at - c.ahead
    FROM chosen c CROSS JOIN LATERAL (SELECT unique_key FROM {job} WHERE id = c.job_id OFFSET 0) j
    WHERE h.key = sha256(convert_to(j.unique_key, 'UTF8')) AND h.job_id = c.job_id AND h.expires_at IS NOT NULL
)
UPDATE {finished} f SET started_at = f.started_at - c.ahead, finished_at = f.finished_at - c.ahead
FROM chosen c WHERE f.job_id = c.job_id;

-- name: forget_holds
DELETE FROM {unique_hold} WHERE key = ANY (ARRAY(
    SELECT key FROM {unique_hold} WHERE expires_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY expires_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
));

-- name: forget_failures
-- Expired hourly counts; the group keeps the time at which it was last seen.
WITH old AS (
    DELETE FROM {failure_count}
    WHERE hour < coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval RETURNING fingerprint, last_at
)
UPDATE {failure_group} g SET last_at = greatest(g.last_at, o.last_at)
FROM (SELECT fingerprint, max(last_at) AS last_at FROM old GROUP BY fingerprint ORDER BY fingerprint) o
WHERE g.fingerprint = o.fingerprint AND g.last_at < o.last_at;

-- name: forget_groups
-- Groups without recent failures and without dead letters.
DELETE FROM {failure_group} g
WHERE g.last_at < coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval
  AND NOT EXISTS (SELECT FROM {failure_count} c WHERE c.fingerprint = g.fingerprint)
  AND NOT EXISTS (SELECT FROM {finished} f WHERE f.state = 'dead' AND f.fingerprint = g.fingerprint);

-- name: forget_bulks
DELETE FROM {bulk}
WHERE created_at <= coalesce(%(now)s::timestamptz, now()) - {BULKS_KEPT}
  AND finished_at <= coalesce(%(now)s::timestamptz, now()) - {BULKS_KEPT};
