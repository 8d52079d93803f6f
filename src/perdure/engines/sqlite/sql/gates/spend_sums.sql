-- name: unsummed
-- New and changed spends, name by name. Estimates are never summed: they end with their attempt.
SELECT CAST(json_group_array(id) AS BLOB)
FROM (
    SELECT id FROM {spend} INDEXED BY {spend_unsummed}
    WHERE (summed_at IS NOT at OR summed_amount IS NOT amount) AND is_estimate = 0
    LIMIT :limit
);

-- name: add_up
-- Spends are added where they belong now, and subtracted where they were. A sum that holds nothing any more is exactly
-- 0: rounding leaves no rest.
INSERT INTO {spend_sum} (name, span, at, amount, number)
SELECT part.name, part.span, part.at, TOTAL(part.amount), sum(part.number)
FROM (
    SELECT spend.name, span.value AS span, spend.at - spend.at % span.value AS at, spend.amount, 1 AS number
    FROM json_each(:ids) AS row
    CROSS JOIN {spend} AS spend ON spend.id = row.value
    CROSS JOIN json_each(:spans) AS span
    UNION ALL
    SELECT spend.name, span.value, spend.summed_at - spend.summed_at % span.value, -spend.summed_amount, -1
    FROM json_each(:ids) AS row
    CROSS JOIN {spend} AS spend ON spend.id = row.value
    CROSS JOIN json_each(:spans) AS span
    WHERE spend.summed_at IS NOT NULL
) AS part
WHERE true
GROUP BY part.name, part.span, part.at
ON CONFLICT (name, span, at) DO UPDATE
SET
    amount = CASE WHEN number + excluded.number = 0 THEN 0.0 ELSE amount + excluded.amount END,
    number = number + excluded.number;

-- name: note_summed
UPDATE {spend} SET summed_at = at, summed_amount = amount WHERE id IN (SELECT row.value FROM json_each(:ids) AS row);

-- name: forget_sums
-- Never delete sums before their spends: the remaining spends are subtracted from them.
DELETE FROM {spend_sum}
WHERE
    (name, span, at) IN (
        WITH RECURSIVE each_name (name) AS (
            SELECT min(name) FROM {spend_sum}
            UNION ALL
            SELECT (SELECT min(name) FROM {spend_sum} WHERE name > each_name.name)
            FROM each_name WHERE each_name.name IS NOT NULL
        )
        SELECT sum.name, sum.span, sum.at
        FROM each_name
        CROSS JOIN json_each(:spans) AS row
        CROSS JOIN
            {spend_sum} AS sum
            ON sum.name = each_name.name AND sum.span = row.value AND sum.at <= :old - row.value
        WHERE NOT EXISTS (SELECT 1 FROM {spend} AS spend WHERE spend.name = sum.name AND spend.at < sum.at + sum.span)
        LIMIT :limit
    );
