-- name: lend
INSERT INTO {gate_loan} AS l (key, span, worker_id, number)
SELECT i.key, i.span, %(worker)s::bigint, i.number
FROM unnest(%(keys)s::text[], %(spans)s::interval[], %(numbers)s::int[]) AS i (key, span, number)
ON CONFLICT (worker_id, key, span) DO UPDATE SET number = l.number + excluded.number;

-- name: loans
SELECT key, span, number FROM {gate_loan} WHERE worker_id = %(worker)s::bigint;

-- name: waited_for
-- One seek shows whether any job waits; if so, each loan is looked up once, no matter how many jobs wait.
SELECT l.key, l.span FROM {gate_loan} l
WHERE l.worker_id = %(worker)s::bigint
AND (EXISTS (SELECT FROM {gate_wait}) OR EXISTS (SELECT FROM {gate_place}))
AND CASE
    WHEN l.span = interval '0' THEN (SELECT true FROM {gate_wait} w WHERE w.key = l.key LIMIT 1)
    ELSE (SELECT true FROM {gate_place} p WHERE p.key = l.key LIMIT 1)
END;

-- name: take_off
UPDATE {gate_loan} l SET number = l.number - i.number
FROM unnest(%(keys)s::text[], %(spans)s::interval[], %(numbers)s::int[]) AS i (key, span, number)
WHERE l.key = i.key AND l.span = i.span AND l.worker_id = %(worker)s::bigint;

-- name: leave
UPDATE {gate_loan} l SET number = least(l.number, i.number)
FROM unnest(%(keys)s::text[], %(spans)s::interval[], %(numbers)s::int[]) AS i (key, span, number)
WHERE l.key = i.key AND l.span = i.span AND l.worker_id = %(worker)s::bigint;

-- name: forget_empty
-- A separate statement, because a loan may have been added since the last one began.
DELETE FROM {gate_loan} l
USING unnest(%(keys)s::text[], %(spans)s::interval[], %(numbers)s::int[]) AS i (key, span, number)
WHERE l.key = i.key AND l.span = i.span AND l.worker_id = %(worker)s::bigint AND l.number <= 0;

-- name: recall
-- Take back the loans of dead workers: slots as far as the worker holds fewer jobs; starts once their time is over, or
-- if the worker was declared dead before the clock was set back. Returns the keys of free slots.
WITH RECURSIVE borrower (id) AS (
    (SELECT worker_id FROM {gate_loan} ORDER BY worker_id LIMIT 1)
    UNION ALL
    SELECT n.worker_id FROM borrower b
    CROSS JOIN LATERAL (SELECT worker_id FROM {gate_loan} WHERE worker_id > b.id ORDER BY worker_id LIMIT 1) n
), dead AS MATERIALIZED (
    SELECT b.id, w.dead_at, (SELECT count(*) FROM {lease} l WHERE l.worker_id = b.id) AS jobs
    FROM borrower b LEFT JOIN {worker} w ON w.id = b.id
    WHERE w.id IS NULL OR w.dead_at IS NOT NULL
), gone AS (
    DELETE FROM {gate_loan} l USING dead d
    WHERE l.worker_id = d.id AND CASE
        WHEN l.span = interval '0' THEN d.jobs = 0
        ELSE d.dead_at IS NULL OR d.dead_at + l.span <= coalesce(%(now)s::timestamptz, now())
            OR d.dead_at > coalesce(%(now)s::timestamptz, now()) + {CLOCK_SLACK}
    END
    RETURNING l.key, l.span
), cut AS (
    UPDATE {gate_loan} l SET number = d.jobs FROM dead d
    WHERE l.worker_id = d.id AND l.span = interval '0' AND d.jobs > 0 AND l.number > d.jobs
    RETURNING l.key, l.span
)
SELECT key FROM gone WHERE span = interval '0' UNION SELECT key FROM cut;
