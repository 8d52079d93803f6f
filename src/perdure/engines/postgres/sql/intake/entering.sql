-- name: line_up
-- The part `{line_up}` of each statement that makes jobs ready. It follows `entering`: the jobs, with the number `seq`
-- of their place if they have one, a `place` that orders the others, and `due_at`, when they were due, if that is known
-- and is not `since`. Jobs without a place and without a fair key go to the end of the line. Jobs with a fair key take
-- turns: the next job of each key goes one step behind its last one, or behind the front of the line if that is farther
-- on, or behind the newest number if no job waits. A job whose number is taken goes to the end of the line.
plain AS (
    INSERT INTO {ready} (queue, priority, job_id, failures, crashes, since, reason, due_at)
    SELECT e.queue, e.priority, e.job_id, e.failures, e.crashes, e.since, e.reason, e.due_at
    FROM entering e WHERE e.fair_key IS NULL AND e.seq IS NULL ORDER BY e.place, e.job_id
), back AS (
    INSERT INTO {ready} (queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at)
    SELECT e.queue, e.priority, e.seq, e.job_id, e.failures, e.crashes, e.since, e.reason, e.fair_key, e.due_at
    FROM entering e WHERE e.seq IS NOT NULL
    ON CONFLICT (queue, priority, seq) DO NOTHING
    RETURNING job_id
), fair AS MATERIALIZED (
    SELECT e.*, row_number() OVER (
        PARTITION BY e.queue, e.priority, e.fair_key ORDER BY e.place, e.job_id
    ) AS nth
    FROM entering e WHERE e.fair_key IS NOT NULL AND e.seq IS NULL
), placed AS MATERIALIZED (
    SELECT k.*, max(greatest(f.seq, l.seq)) OVER (PARTITION BY k.queue, k.priority, k.fair_key) AS after
    FROM fair k
    LEFT JOIN LATERAL (
        SELECT r.seq FROM {ready} r
        WHERE k.nth = 1 AND r.queue = k.queue AND r.priority = k.priority ORDER BY r.seq LIMIT 1
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT r.seq FROM {ready} r
        WHERE k.nth = 1 AND r.queue = k.queue AND r.priority = k.priority AND r.fair_key = k.fair_key
        ORDER BY r.seq DESC LIMIT 1
    ) l ON true
), seated AS (
    INSERT INTO {ready} (queue, priority, seq, job_id, failures, crashes, since, reason, fair_key, due_at)
    SELECT k.queue, k.priority,
           (coalesce(k.after, n.last_value) / 1048576 + k.nth) * 1048576 + nextval('{fair_seq}'),
           k.job_id, k.failures, k.crashes, k.since, k.reason, k.fair_key, k.due_at
    FROM placed k CROSS JOIN {ready_seq} n
    ORDER BY k.place, k.job_id
    ON CONFLICT (queue, priority, seq) DO NOTHING
    RETURNING job_id
), unseated AS (
    INSERT INTO {ready} (queue, priority, job_id, failures, crashes, since, reason, due_at)
    SELECT e.queue, e.priority, e.job_id, e.failures, e.crashes, e.since, e.reason, e.due_at
    FROM entering e
    WHERE CASE WHEN e.seq IS NOT NULL THEN e.job_id NOT IN (SELECT b.job_id FROM back b)
               ELSE e.fair_key IS NOT NULL AND e.job_id NOT IN (SELECT s.job_id FROM seated s) END
)
