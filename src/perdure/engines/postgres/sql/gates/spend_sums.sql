-- name: sum_up
-- Add new and changed spends where they belong now, and subtract them where they were. Estimates are never summed: they
-- end with their attempt. Rows that another process is changing are left for the next time. Two processes that sum at
-- once share the work, and change the sums in one order. A sum that holds nothing any more is exactly 0: rounding
-- leaves no rest.
WITH changed AS MATERIALIZED (
    SELECT id, name, at, amount, summed_at, summed_amount FROM {spend}
    WHERE (summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount)
    AND NOT is_estimate
    ORDER BY name || '', at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), noted AS (
    UPDATE {spend} s SET summed_at = c.at, summed_amount = c.amount FROM changed c WHERE s.id = c.id
    RETURNING c.name, c.at, c.amount, c.summed_at, c.summed_amount
), parts AS (
    SELECT name, at, amount, 1 AS number FROM noted
    UNION ALL
    SELECT name, summed_at, -summed_amount, -1 FROM noted WHERE summed_at IS NOT NULL
), added AS (
    INSERT INTO {spend_sum} AS m (name, span, at, amount, number)
    SELECT p.name, w.span, date_bin(w.span, p.at, timestamptz 'epoch') AS begins, sum(p.amount), sum(p.number)
    FROM parts p CROSS JOIN unnest(%(spans)s::interval[]) AS w (span)
    GROUP BY p.name, w.span, begins ORDER BY p.name, w.span, begins
    ON CONFLICT (name, span, at) DO UPDATE
    SET amount = CASE WHEN m.number + excluded.number = 0 THEN 0 ELSE m.amount + excluded.amount END,
        number = m.number + excluded.number
)
SELECT count(*) FROM noted;

-- name: forget_sums
-- Never delete sums before their spends: the remaining spends are subtracted from them.
WITH RECURSIVE each_name (name) AS (
    (SELECT name FROM {spend_sum} ORDER BY name LIMIT 1)
    UNION ALL
    SELECT n.name FROM each_name e
    CROSS JOIN LATERAL (SELECT name FROM {spend_sum} WHERE name > e.name ORDER BY name LIMIT 1) n
), old AS MATERIALIZED (
    SELECT s.place FROM each_name e
    CROSS JOIN unnest(%(spans)s::interval[]) AS w (span)
    LEFT JOIN LATERAL (SELECT at FROM {spend} WHERE name = e.name ORDER BY at LIMIT 1) f ON true
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {spend_sum}
        WHERE name = e.name AND span = w.span
        AND at <= least(coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval, f.at) - w.span
        ORDER BY at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
    ) s
    LIMIT %(limit)s::int
)
DELETE FROM {spend_sum} WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING true;
