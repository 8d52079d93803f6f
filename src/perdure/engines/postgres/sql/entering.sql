-- name: line_up
-- The part `{line_up}` of each statement that makes jobs ready. Before it stands `entering`: the jobs, with a `place` that
-- tells their order. Those without a fair key go to the end of the line. The others take turns: each key's next goes one
-- step behind its last, or behind the front of the line if that is farther on, or behind the newest number if nobody
-- waits. One that was given back untouched goes behind the front: about where it was taken from. Who meets a number that
-- is taken goes to the end of the line all the same.
plain AS (
    INSERT INTO {ready} (queue, priority, job_id, failures, crashes, since, reason)
    SELECT e.queue, e.priority, e.job_id, e.failures, e.crashes, e.since, e.reason
    FROM entering e WHERE e.fair_key IS NULL ORDER BY e.place, e.job_id
), fair AS MATERIALIZED (
    SELECT k.*, row_number() OVER (
        PARTITION BY k.queue, k.priority, k.fair_key, k.is_back ORDER BY k.place, k.job_id
    ) AS nth
    FROM (
        SELECT e.*, e.reason IS NOT DISTINCT FROM 'released' AS is_back FROM entering e WHERE e.fair_key IS NOT NULL
    ) k
), placed AS MATERIALIZED (
    SELECT k.*, max(greatest(f.seq, l.seq)) OVER (PARTITION BY k.queue, k.priority, k.fair_key, k.is_back) AS after
    FROM fair k
    LEFT JOIN LATERAL (
        SELECT r.seq FROM {ready} r
        WHERE k.nth = 1 AND r.queue = k.queue AND r.priority = k.priority ORDER BY r.seq LIMIT 1
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT r.seq FROM {ready} r
        WHERE k.nth = 1 AND NOT k.is_back
          AND r.queue = k.queue AND r.priority = k.priority AND r.fair_key = k.fair_key
        ORDER BY r.seq DESC LIMIT 1
    ) l ON true
), seated AS (
    INSERT INTO {ready} (queue, priority, seq, job_id, failures, crashes, since, reason, fair_key)
    SELECT k.queue, k.priority,
           (coalesce(k.after, n.last_value) / 1048576 + k.nth) * 1048576 + nextval('{fair_seq}'),
           k.job_id, k.failures, k.crashes, k.since, k.reason, k.fair_key
    FROM placed k CROSS JOIN {ready_seq} n
    ORDER BY k.place, k.job_id
    ON CONFLICT (queue, priority, seq) DO NOTHING
    RETURNING job_id
), unseated AS (
    INSERT INTO {ready} (queue, priority, job_id, failures, crashes, since, reason)
    SELECT k.queue, k.priority, k.job_id, k.failures, k.crashes, k.since, k.reason
    FROM placed k WHERE k.job_id NOT IN (SELECT s.job_id FROM seated s)
)
