-- name: enter
-- Insert new gates, in a separate transaction, so that counting never waits for it.
INSERT INTO {gate} (name, span, until)
SELECT n.name, interval '0', coalesce(%(now)s::timestamptz, now()) + %(kept)s::interval
FROM unnest(%(names)s::text[]) AS n (name) ORDER BY n.name COLLATE "C"
ON CONFLICT (name) DO NOTHING;

-- name: lock
-- Lock gates in the order of their names: requests for the same gates wait for each other, and never deadlock. Returns
-- their number, and the gates that need an update: stored with another span than requested, or soon to be forgotten.
WITH locked AS MATERIALIZED (
    SELECT i.name, i.span AS asked, g.span, g.until
    FROM unnest(%(names)s::text[], %(spans)s::interval[]) AS i (name, span)
    CROSS JOIN LATERAL (SELECT span, until FROM {gate} WHERE name = i.name FOR UPDATE) g
)
SELECT NULL AS name, NULL::interval AS span, count(*) AS number FROM locked
UNION ALL
SELECT name, span, NULL FROM locked
WHERE span <> asked OR until < coalesce(%(now)s::timestamptz, now()) + %(kept)s::interval / 2;

-- name: renew
UPDATE {gate} g
SET span = greatest(g.span, i.span), until = coalesce(%(now)s::timestamptz, now()) + %(kept)s::interval
FROM unnest(%(names)s::text[], %(spans)s::interval[]) AS i (name, span)
WHERE g.name = i.name;

-- name: look
-- All that most batches need, in one query: the time, read when all locks are held; the positions in the batch of lost
-- claims; how many leases hold each slot's key, without the requesting claims; the slots and rates with waiting jobs;
-- the starts of these rates, and of keys with at least so many starts (of other keys nothing more needs to be known);
-- keys whose newest start is in the future, because the clock was set back. Holds without a lease, and those of the
-- requesting claims, are deleted on the way. Loans count as holders and as starts; the borrower must be alive. One look
-- shows that no job waits or has a place, and one that nothing is lent.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now
), lent AS MATERIALIZED (
    SELECT i.key, i.is_rate, l.span, sum(l.number) AS number
    FROM (
        SELECT key, false AS is_rate FROM unnest(%(slots)s::text[]) AS k (key)
        UNION ALL SELECT key, true FROM unnest(%(rates)s::text[]) AS k (key)
    ) i
    CROSS JOIN LATERAL (SELECT span, worker_id, number FROM {gate_loan} WHERE key = i.key OFFSET 0) l
    LEFT JOIN {worker} w ON w.id = l.worker_id
    WHERE EXISTS (SELECT FROM {gate_loan}) AND (l.span > interval '0') = i.is_rate
    AND (w.dead_at IS NULL OR NOT i.is_rate OR (
        w.dead_at + l.span > (SELECT now FROM t) AND w.dead_at <= (SELECT now FROM t) + {CLOCK_SLACK}
    ))
    GROUP BY i.key, i.is_rate, l.span
), held AS MATERIALIZED (
    SELECT k.key, h.place, h.job_id, h.token, l.held IS NOT NULL AS is_live
    FROM unnest(%(slots)s::text[]) AS k (key)
    CROSS JOIN LATERAL (SELECT ctid AS place, job_id, token FROM {gate_hold} WHERE key = k.key OFFSET 0) h
    LEFT JOIN LATERAL (
        SELECT true AS held FROM {lease} WHERE job_id = h.job_id AND token = h.token OFFSET 0
    ) l ON true
), gone AS (
    DELETE FROM {gate_hold} WHERE ctid = ANY (ARRAY(
        SELECT place FROM held WHERE NOT is_live OR (job_id, token) IN (
            SELECT c.id, c.token FROM unnest(%(ids)s::uuid[], %(tokens)s::bigint[]) AS c (id, token)
        )
    ))
), placed AS MATERIALIZED (
    SELECT i.key FROM unnest(%(rates)s::text[]) AS i (key)
    WHERE EXISTS (SELECT FROM {gate_place}) AND EXISTS (SELECT FROM {gate_place} p WHERE p.key = i.key)
), begun AS MATERIALIZED (
    SELECT i.key, i.since, i.least, l.total - f.before AS number, l.at
    FROM (
        SELECT i.key, i.least, t.now - i.span AS since
        FROM t CROSS JOIN unnest(%(rates)s::text[], %(spans)s::interval[], %(leasts)s::int[]) AS i (key, span, least)
    ) i
    CROSS JOIN LATERAL (
        SELECT total - number AS before FROM {gate_begun} WHERE key = i.key AND at > i.since ORDER BY at LIMIT 1
    ) f
    CROSS JOIN LATERAL (SELECT total, at FROM {gate_begun} WHERE key = i.key ORDER BY at DESC LIMIT 1) l
), listed AS MATERIALIZED (
    SELECT i.key, i.since FROM begun i
    WHERE i.number + coalesce((SELECT sum(n.number) FROM lent n WHERE n.is_rate AND n.key = i.key), 0) >= i.least
    OR i.key IN (SELECT key FROM placed)
)
SELECT 'now' AS sort, NULL AS key, NULL::bigint AS number, t.now AS at, NULL::interval AS span FROM t
UNION ALL
SELECT 'lives', NULL, NULL, NULL, NULL FROM {worker} WHERE id = %(borrower)s::bigint AND dead_at IS NULL
UNION ALL
SELECT 'lost', NULL, c.place, NULL, NULL
FROM unnest(%(ids)s::uuid[], %(tokens)s::bigint[]) WITH ORDINALITY AS c (id, token, place)
LEFT JOIN LATERAL (SELECT true AS held FROM {lease} WHERE job_id = c.id AND token = c.token OFFSET 0) l ON true
WHERE l.held IS NULL
UNION ALL
SELECT 'held', key, count(*), NULL, NULL FROM held
WHERE is_live AND (job_id, token) NOT IN (
    SELECT c.id, c.token FROM unnest(%(ids)s::uuid[], %(tokens)s::bigint[]) AS c (id, token)
)
GROUP BY key
UNION ALL
SELECT 'waited for', k.key, NULL, NULL, NULL FROM unnest(%(slots)s::text[]) AS k (key)
WHERE EXISTS (SELECT FROM {gate_wait}) AND EXISTS (SELECT FROM {gate_wait} w WHERE w.key = k.key)
UNION ALL
SELECT 'placed', key, NULL, NULL, NULL FROM placed
UNION ALL
SELECT CASE WHEN is_rate THEN 'starts lent' ELSE 'slots lent' END, key, number, NULL, span FROM lent
UNION ALL
SELECT 'ahead', key, NULL, NULL, NULL FROM begun WHERE at > (SELECT now FROM t)
UNION ALL
SELECT 'start', i.key, b.number, b.at, NULL FROM listed i
CROSS JOIN LATERAL (SELECT number, at FROM {gate_begun} WHERE key = i.key AND at > i.since OFFSET 0) b;

-- name: last_places
-- The end of each line; a shorter line is read as a whole.
SELECT i.key, p.at, p.job_id::text, p.given_at
FROM unnest(%(keys)s::text[], %(mosts)s::int[]) AS i (key, most)
CROSS JOIN LATERAL (SELECT at, job_id, given_at FROM {gate_place} WHERE key = i.key ORDER BY at DESC LIMIT i.most) p;

-- name: drop_places_ahead
-- Places with a future time come from before the clock was set back: they would hold up all jobs behind them.
DELETE FROM {gate_place} WHERE key = ANY (%(keys)s::text[]) AND given_at > %(ahead)s::timestamptz;

-- name: other_places
-- For long lines: the near places, and those of the requesting jobs.
SELECT i.key, p.at, p.job_id::text
FROM unnest(%(keys)s::text[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[]) AS i (key, since, until)
CROSS JOIN LATERAL (
    SELECT at, job_id FROM {gate_place} WHERE key = i.key AND at > i.since AND at < i.until OFFSET 0
) p
UNION ALL
SELECT a.key, p.at, p.job_id::text
FROM unnest(%(asked)s::text[], %(askers)s::uuid[]) AS a (key, job_id)
CROSS JOIN LATERAL (SELECT at, job_id FROM {gate_place} WHERE key = a.key AND job_id = a.job_id OFFSET 0) p;

-- name: redate
-- Redate starts with a future time from a clock that was set back: they have happened, and count no longer than others.
WITH ahead AS (
    DELETE FROM {gate_begun} WHERE key = ANY (%(keys)s::text[]) AND at > %(now)s::timestamptz
    RETURNING key, number, total, until - at AS span
)
INSERT INTO {gate_begun} AS b (key, at, number, total, until)
SELECT key, %(now)s::timestamptz, sum(number), max(total), %(now)s::timestamptz + max(span) FROM ahead GROUP BY key
ON CONFLICT (key, at) DO UPDATE
SET number = b.number + excluded.number, total = excluded.total, until = greatest(b.until, excluded.until);

-- name: begin
-- Add this many starts of each key, at this instant.
INSERT INTO {gate_begun} AS b (key, at, number, total, until)
SELECT i.key, %(now)s::timestamptz, i.number, coalesce(l.total, 0) + i.number, %(now)s::timestamptz + i.span
FROM unnest(%(keys)s::text[], %(numbers)s::int[], %(spans)s::interval[]) AS i (key, number, span)
LEFT JOIN LATERAL (SELECT total FROM {gate_begun} WHERE key = i.key ORDER BY at DESC LIMIT 1) l ON true
ON CONFLICT (key, at) DO UPDATE
SET number = b.number + excluded.number, total = excluded.total, until = greatest(b.until, excluded.until);

-- name: leave_places
DELETE FROM {gate_place} p USING unnest(%(keys)s::text[], %(ids)s::uuid[]) AS i (key, job_id)
WHERE p.key = i.key AND p.job_id = i.job_id;

-- name: reserve
INSERT INTO {gate_place} (key, at, job_id, until, given_at)
SELECT i.*, %(now)s::timestamptz
FROM unnest(%(keys)s::text[], %(ats)s::timestamptz[], %(ids)s::uuid[], %(untils)s::timestamptz[]) AS i
ON CONFLICT (key, job_id) DO UPDATE SET at = excluded.at, until = excluded.until, given_at = excluded.given_at;

-- name: hold
-- `look` has deleted the earlier holds of these jobs.
INSERT INTO {gate_hold} (key, job_id, token)
SELECT * FROM unnest(%(keys)s::text[], %(ids)s::uuid[], %(tokens)s::bigint[]);

-- name: stand_in_line
-- A job with a place keeps it.
INSERT INTO {gate_wait} AS w (key, job_id, size)
SELECT i.key, i.job_id, i.size
FROM unnest(%(keys)s::text[], %(ids)s::uuid[], %(sizes)s::int[]) WITH ORDINALITY AS i (key, job_id, size, place)
ORDER BY i.place
ON CONFLICT (key, job_id) DO UPDATE SET size = excluded.size WHERE w.size <> excluded.size;

-- name: leave_line
DELETE FROM {gate_wait} w USING unnest(%(keys)s::text[], %(ids)s::uuid[]) AS i (key, job_id)
WHERE w.key = i.key AND w.job_id = i.job_id;

-- name: next_in_line
-- For each key, as many parked jobs as there is room for, by the limit that the first of them was parked with.
SELECT n.job_id::text
FROM (
    SELECT key, place FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (key, place)
    WHERE EXISTS (SELECT FROM {gate_wait})
) k
CROSS JOIN LATERAL (
    SELECT w.size FROM {gate_wait} w
    CROSS JOIN LATERAL (SELECT state, reason FROM {parked} WHERE job_id = w.job_id OFFSET 0) p
    WHERE w.key = k.key AND p.state = 'paused' AND p.reason = %(reason)s::text ORDER BY w.turn LIMIT 1
) f
CROSS JOIN LATERAL (
    SELECT count(*) + (
        SELECT coalesce(sum(number), 0) FROM {gate_loan} WHERE key = k.key AND span = interval '0'
    ) AS holders
    FROM (SELECT job_id, token FROM {gate_hold} WHERE key = k.key OFFSET 0) h
    CROSS JOIN LATERAL (SELECT FROM {lease} WHERE job_id = h.job_id AND token = h.token OFFSET 0) l
) h
CROSS JOIN LATERAL (
    SELECT w.job_id, w.turn FROM {gate_wait} w
    CROSS JOIN LATERAL (SELECT state, reason FROM {parked} WHERE job_id = w.job_id OFFSET 0) p
    WHERE w.key = k.key AND p.state = 'paused' AND p.reason = %(reason)s::text ORDER BY w.turn LIMIT greatest(f.size - h.holders, 0)
) n
ORDER BY k.place, n.turn;

-- name: estimate
INSERT INTO {spend} (name, at, amount, job_id, is_estimate)
SELECT i.name, i.at, i.amount, i.job_id, true
FROM unnest(%(names)s::text[], %(ats)s::timestamptz[], %(amounts)s::float8[], %(ids)s::uuid[])
    AS i (name, at, amount, job_id)
ON CONFLICT (name, job_id) WHERE is_estimate DO UPDATE SET at = excluded.at, amount = excluded.amount;

-- name: spend
-- Replaces the attempt's estimate, if there is one; does nothing for a lost claim.
WITH held AS MATERIALIZED (
    SELECT job_id FROM {lease} WHERE job_id = %(id)s::uuid AND token = %(token)s::bigint FOR SHARE
), settled AS (
    UPDATE {spend} s SET at = coalesce(%(now)s::timestamptz, now()), amount = %(amount)s::float8, is_estimate = false
    FROM held h WHERE s.name = %(name)s::text AND s.job_id = h.job_id AND s.is_estimate RETURNING s.id
), added AS (
    INSERT INTO {spend} (name, at, amount, job_id, is_estimate)
    SELECT %(name)s::text, coalesce(%(now)s::timestamptz, now()), %(amount)s::float8, h.job_id, false
    FROM held h WHERE NOT EXISTS (SELECT FROM settled)
)
SELECT job_id FROM held;

-- name: ended_estimates
-- Lock the estimates whose attempt is over: from now on no new attempt of their jobs can take them over.
SELECT s.id FROM (
    SELECT id, job_id FROM {spend} WHERE is_estimate OFFSET 0
) e
LEFT JOIN LATERAL (SELECT true AS held FROM {lease} WHERE job_id = e.job_id OFFSET 0) l ON true
CROSS JOIN LATERAL (SELECT id FROM {spend} WHERE id = e.id FOR UPDATE SKIP LOCKED) s
WHERE l.held IS NULL LIMIT %(limit)s::int;

-- name: drop_estimates
-- A separate statement: an estimate that was taken over before it was locked has a lease by now. Estimates that the
-- previous release has summed stay, to be subtracted from the sums.
WITH ended AS MATERIALIZED (
    SELECT s.id, s.summed_at IS NULL AS is_new FROM {spend} s
    WHERE s.id = ANY (%(ids)s::bigint[]) AND s.is_estimate
    AND NOT EXISTS (SELECT FROM {lease} l WHERE l.job_id = s.job_id)
), gone AS (
    DELETE FROM {spend} s USING ended e WHERE s.id = e.id AND e.is_new RETURNING s.id
), void AS (
    UPDATE {spend} s SET amount = 0, is_estimate = false FROM ended e WHERE s.id = e.id AND NOT e.is_new RETURNING s.id
)
SELECT id FROM gone UNION ALL SELECT id FROM void;

-- name: forget_places
DELETE FROM {gate_place} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {gate_place} WHERE until <= coalesce(%(now)s::timestamptz, now())
    ORDER BY until LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)) RETURNING true;

-- name: forget_spends
-- Name by name, because names are few.
WITH RECURSIVE each_name (name) AS (
    (SELECT name FROM {spend} ORDER BY name LIMIT 1)
    UNION ALL
    SELECT n.name FROM each_name e
    CROSS JOIN LATERAL (SELECT name FROM {spend} WHERE name > e.name ORDER BY name LIMIT 1) n
), old AS MATERIALIZED (
    SELECT s.place FROM each_name e
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {spend}
        WHERE name = e.name AND at <= coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval
        ORDER BY at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
    ) s
    LIMIT %(limit)s::int
)
DELETE FROM {spend} WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING true;

-- name: redate_spends
-- Redate spends with a future time from a clock that was set back: they count no longer than others.
WITH RECURSIVE each_name (name) AS (
    (SELECT name FROM {spend} ORDER BY name LIMIT 1)
    UNION ALL
    SELECT n.name FROM each_name e
    CROSS JOIN LATERAL (SELECT name FROM {spend} WHERE name > e.name ORDER BY name LIMIT 1) n
), ahead AS MATERIALIZED (
    SELECT s.place FROM each_name e
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {spend}
        WHERE name = e.name AND at > coalesce(%(now)s::timestamptz, now()) + %(slack)s::interval
        ORDER BY at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
    ) s
    LIMIT %(limit)s::int
)
UPDATE {spend} SET at = coalesce(%(now)s::timestamptz, now()) WHERE ctid = ANY (ARRAY(SELECT place FROM ahead))
RETURNING true;

-- name: forget_gates
DELETE FROM {gate} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {gate} WHERE until <= coalesce(%(now)s::timestamptz, now())
    ORDER BY until LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)) RETURNING true;

-- name: stale_holds
-- Walks the key from where the last look ended. Rows that a counting process is deleting are skipped.
WITH page AS MATERIALIZED (
    SELECT h.ctid AS place, h.key, h.job_id, l.held IS NULL AS is_stale
    FROM (
        SELECT ctid, key, job_id, token FROM {gate_hold}
        WHERE (key, job_id) > (%(key)s::text, %(after)s::uuid) ORDER BY key, job_id LIMIT %(limit)s::int
    ) h
    LEFT JOIN LATERAL (
        SELECT true AS held FROM {lease} WHERE job_id = h.job_id AND token = h.token OFFSET 0
    ) l ON true
), free AS MATERIALIZED (
    SELECT ctid AS place FROM {gate_hold} WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE is_stale))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {gate_hold} WHERE ctid = ANY (ARRAY(SELECT place FROM free)) RETURNING job_id
)
SELECT p.key, p.job_id::text, (SELECT count(*) FROM gone), (SELECT count(*) FROM page)
FROM page p ORDER BY p.key DESC, p.job_id DESC LIMIT 1;

-- name: stale_line
-- The same for jobs that have ended or were deleted.
WITH page AS MATERIALIZED (
    SELECT w.ctid AS place, w.key, w.job_id, j.known IS NULL OR f.ended AS is_stale
    FROM (
        SELECT ctid, key, job_id FROM {gate_wait}
        WHERE (key, job_id) > (%(key)s::text, %(after)s::uuid) ORDER BY key, job_id LIMIT %(limit)s::int
    ) w
    LEFT JOIN LATERAL (SELECT true AS known FROM {job} WHERE id = w.job_id OFFSET 0) j ON true
    LEFT JOIN LATERAL (SELECT true AS ended FROM {finished} WHERE job_id = w.job_id OFFSET 0) f ON true
), free AS MATERIALIZED (
    SELECT ctid AS place FROM {gate_wait} WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE is_stale))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {gate_wait} WHERE ctid = ANY (ARRAY(SELECT place FROM free)) RETURNING job_id
)
SELECT p.key, p.job_id::text, (SELECT count(*) FROM gone), (SELECT count(*) FROM page)
FROM page p ORDER BY p.key DESC, p.job_id DESC LIMIT 1;

-- name: stale_places
-- And for their places before a rate.
WITH page AS MATERIALIZED (
    SELECT p.ctid AS place, p.key, p.job_id, j.known IS NULL OR f.ended AS is_stale
    FROM (
        SELECT ctid, key, job_id FROM {gate_place}
        WHERE (key, job_id) > (%(key)s::text, %(after)s::uuid) ORDER BY key, job_id LIMIT %(limit)s::int
    ) p
    LEFT JOIN LATERAL (SELECT true AS known FROM {job} WHERE id = p.job_id OFFSET 0) j ON true
    LEFT JOIN LATERAL (SELECT true AS ended FROM {finished} WHERE job_id = p.job_id OFFSET 0) f ON true
), free AS MATERIALIZED (
    SELECT ctid AS place FROM {gate_place} WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE is_stale))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {gate_place} WHERE ctid = ANY (ARRAY(SELECT place FROM free)) RETURNING job_id
)
SELECT p.key, p.job_id::text, (SELECT count(*) FROM gone), (SELECT count(*) FROM page)
FROM page p ORDER BY p.key DESC, p.job_id DESC LIMIT 1;

-- name: stale_starts
-- The same for starts that no longer count.
WITH page AS MATERIALIZED (
    SELECT ctid AS place, key, at, until <= coalesce(%(now)s::timestamptz, now()) AS is_stale
    FROM {gate_begun} WHERE (key, at) > (%(key)s::text, %(after)s::timestamptz) ORDER BY key, at LIMIT %(limit)s::int
), free AS MATERIALIZED (
    SELECT ctid AS place FROM {gate_begun} WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE is_stale))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {gate_begun} WHERE ctid = ANY (ARRAY(SELECT place FROM free)) RETURNING key
)
SELECT p.key, p.at, (SELECT count(*) FROM gone), (SELECT count(*) FROM page)
FROM page p ORDER BY p.key DESC, p.at DESC LIMIT 1;
