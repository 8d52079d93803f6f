-- name: claim_front
-- Take jobs from the beginning of each queue. The worker's row is locked, so that the worker cannot be declared dead
-- meanwhile; its epoch must be ours.
WITH me AS MATERIALIZED (
    SELECT id FROM {worker} WHERE id = %(worker)s::bigint AND epoch = %(epoch)s::int AND dead_at IS NULL FOR SHARE
), picked AS MATERIALIZED (
    SELECT r.*
    FROM (
        SELECT queue, wanted FROM unnest(%(queues)s::text[], %(limits)s::int[]) AS q (queue, wanted)
        WHERE EXISTS (SELECT FROM me) OFFSET 0
    ) w
    CROSS JOIN LATERAL (
        SELECT ctid, queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at FROM {ready}
        WHERE queue = w.queue
        ORDER BY priority, seq LIMIT w.wanted FOR UPDATE SKIP LOCKED
    ) r
), {take_picked};

-- name: claim_onward
-- As above, from the mark of each priority of each queue.
WITH me AS MATERIALIZED (
    SELECT id FROM {worker} WHERE id = %(worker)s::bigint AND epoch = %(epoch)s::int AND dead_at IS NULL FOR SHARE
), picked AS MATERIALIZED (
    SELECT r.*
    FROM (
        SELECT queue, wanted, starts
        FROM unnest(%(queues)s::text[], %(limits)s::int[], %(starts)s::text[]) AS q (queue, wanted, starts)
        WHERE EXISTS (SELECT FROM me) OFFSET 0
    ) w
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM unnest(w.starts::bigint[]) WITH ORDINALITY AS l (start, place)
        CROSS JOIN LATERAL (
            SELECT ctid, queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at FROM {ready}
            WHERE queue = w.queue AND priority = (l.place - 1)::smallint AND seq > l.start
            ORDER BY seq LIMIT w.wanted FOR UPDATE SKIP LOCKED
        ) r
        LIMIT w.wanted
    ) r
), {take_picked};

-- name: claim_onward_with_returns
-- As above, after the jobs that came back to an older place, which have an index of their own. A start beyond all
-- numbers leaves a priority out.
WITH me AS MATERIALIZED (
    SELECT id FROM {worker} WHERE id = %(worker)s::bigint AND epoch = %(epoch)s::int AND dead_at IS NULL FOR SHARE
), picked AS MATERIALIZED (
    SELECT r.*
    FROM (
        SELECT queue, wanted, starts
        FROM unnest(%(queues)s::text[], %(limits)s::int[], %(starts)s::text[]) AS q (queue, wanted, starts)
        WHERE EXISTS (SELECT FROM me) OFFSET 0
    ) w
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM unnest(w.starts::bigint[]) WITH ORDINALITY AS l (start, place)
        CROSS JOIN LATERAL (
            SELECT b.* FROM (
                SELECT ctid, queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at FROM {ready}
                WHERE queue || '' = w.queue AND priority = (l.place - 1)::smallint AND seq <= l.start
                  AND reason IS NOT NULL AND reason <> {REASON_REQUEUED}
                  AND l.start < 9223372036854775807
                ORDER BY seq LIMIT w.wanted FOR UPDATE SKIP LOCKED
            ) b
            UNION ALL
            SELECT o.* FROM (
                SELECT ctid, queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at FROM {ready}
                WHERE queue = w.queue AND priority = (l.place - 1)::smallint AND seq > l.start
                ORDER BY seq LIMIT w.wanted FOR UPDATE SKIP LOCKED
            ) o
        ) r
        LIMIT w.wanted
    ) r
), {take_picked};

-- name: has_returns
-- Whether one of these queues has jobs that came back.
SELECT EXISTS (
    SELECT FROM {ready} b WHERE b.queue || '' = ANY (%(queues)s::text[])
    AND b.reason IS NOT NULL AND b.reason <> {REASON_REQUEUED}
);

-- name: fronts
-- The next jobs in each priority of each queue; with the number only for jobs that claims find by their mark.
SELECT w.queue, r.priority, r.since, CASE WHEN r.reason IS NULL OR r.reason = {REASON_REQUEUED} THEN r.seq END
FROM unnest(%(queues)s::text[], %(starts)s::text[]) AS w (queue, starts)
CROSS JOIN LATERAL unnest(w.starts::bigint[]) WITH ORDINALITY AS l (start, place)
CROSS JOIN LATERAL (
    SELECT b.* FROM (
        SELECT priority, seq, since, reason FROM {ready}
        WHERE queue || '' = w.queue AND priority = (l.place - 1)::smallint AND seq <= l.start
          AND reason IS NOT NULL AND reason <> {REASON_REQUEUED}
        ORDER BY seq LIMIT %(depth)s::int
    ) b
    UNION ALL
    SELECT o.* FROM (
        SELECT priority, seq, since, reason FROM {ready}
        WHERE queue = w.queue AND priority = (l.place - 1)::smallint AND seq > l.start
        ORDER BY seq LIMIT %(depth)s::int
    ) o
    LIMIT %(depth)s::int
) r
ORDER BY w.queue, r.priority, r.seq;

-- name: newest_number
SELECT last_value FROM {ready_seq};

-- name: epoch
SELECT epoch FROM {worker} WHERE id = %(worker)s::bigint;

-- name: next_epoch
-- Waits for a claim in progress, and invalidates one that has yet to arrive: later claims of the worker have a higher
-- token than the newest one now.
UPDATE {worker} SET epoch = epoch + 1 WHERE id = %(worker)s::bigint
RETURNING epoch, (SELECT CASE WHEN is_called THEN last_value ELSE 0 END + {TOKENS_PER_MS} - 1 FROM {claim_token});

-- name: keep_up
-- Raise the sequence of tokens to the time in milliseconds, times 2^20, unless that would be less than a second's
-- worth. A database that was restored from a backup thus gives out higher tokens than before. Claims draw only a few
-- numbers between the look and the move; a second's worth is a thousand. A role without the right to do this works
-- without it.
SELECT setval('{claim_token}', t.floor::bigint)
FROM {claim_token} s, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) * {TOKENS_PER_MS} AS floor) t
WHERE s.last_value < t.floor - 1000 * {TOKENS_PER_MS} AND t.floor < {HIGHEST_TOKEN_BY_CLOCK}
AND has_sequence_privilege('{claim_token}', 'UPDATE');

-- name: lost_claims
-- Jobs that were claimed for a worker by a statement with a lost answer.
SELECT l.job_id::text, l.token, j.kind, l.queue, j.args, l.failures, l.crashes, j.crash_limit, l.since, l.claimed_at,
       j.unique_key, j.unique_states, j.unique_dead_for, j.tags, j.meta, j.unknown_since, j.cursor,
       j.parent_id::text, j.is_parent, false, j.gates_passed, j.settings, j.ref, NULL::timestamptz, j.gates
FROM {lease} l JOIN {job} j ON j.id = l.job_id
WHERE l.worker_id = %(worker)s::bigint AND l.token > %(token)s::bigint
ORDER BY l.priority, l.since, l.job_id;

-- name: leases
SELECT job_id::text, token FROM {lease} WHERE worker_id = %(worker)s::bigint;

-- name: claims_held
SELECT l.job_id::text, l.token, j.kind, l.queue, j.args, l.failures, l.crashes, j.crash_limit, l.since, l.claimed_at,
       j.unique_key, j.unique_states, j.unique_dead_for, j.tags, j.meta, j.unknown_since, j.cursor,
       j.parent_id::text, j.is_parent, false, j.gates_passed, j.settings, j.ref, NULL::timestamptz, j.gates
FROM {lease} l JOIN {job} j ON j.id = l.job_id
WHERE l.job_id = ANY (%(ids)s::uuid[]) AND l.worker_id = %(worker)s::bigint
ORDER BY l.job_id;

-- name: settle_keys
-- Adapts the held keys to a move to `running`, where they differ between `ready` and `running`: takes the keys that are
-- now wanted, in the order of their digests, and releases the others. Returns the jobs that got their key.
WITH input AS MATERIALIZED (
    SELECT id, sha256(convert_to(key, 'UTF8')) AS hold, wanted
    FROM unnest(%(ids)s::uuid[], %(keys)s::text[], %(wanted)s::bool[]) AS i (id, key, wanted)
), freed AS (
    DELETE FROM {unique_hold} h USING input i WHERE NOT i.wanted AND h.key = i.hold AND h.job_id = i.id
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT DISTINCT ON (hold) hold, id FROM input WHERE wanted ORDER BY hold, id
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
)
SELECT job_id::text FROM held;
