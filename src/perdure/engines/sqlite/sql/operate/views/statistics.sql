-- name: note_flush
-- A repeated flush changes nothing here, and its counts are not added.
INSERT INTO {statistic_writer} (writer, flush, at) VALUES (:writer, :flush, :now)
ON CONFLICT (writer) DO UPDATE SET flush = excluded.flush, at = excluded.at WHERE flush < excluded.flush;

-- name: add
INSERT INTO {statistic_part} AS kept (at, queue, kind, ending, jobs, waited, ran, {buckets})
SELECT
    row.value ->> 0, row.value ->> 1, row.value ->> 2, row.value ->> 3, row.value ->> 4, row.value ->> 5,
    row.value ->> 6, {bucket_values}
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (at, queue, kind, ending) DO UPDATE
SET
    jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
    {added_buckets};

-- name: minutes
-- The oldest minutes that are over and not rolled up.
SELECT DISTINCT at FROM {statistic_part} WHERE at < :before ORDER BY at LIMIT :limit;

-- name: roll_up
INSERT INTO {statistic} AS kept (span, facet, at, queue, kind, ending, jobs, waited, ran, {buckets})
SELECT
    span.value, facet.value, part.at - part.at % span.value AS begins,
    CASE WHEN facet.value IN ('queue', 'both') THEN part.queue ELSE '' END AS of_queue,
    CASE WHEN facet.value IN ('kind', 'both') THEN part.kind ELSE '' END AS of_kind,
    part.ending, sum(part.jobs), sum(part.waited), sum(part.ran), {bucket_sums}
FROM {statistic_part} AS part CROSS JOIN json_each(:spans) AS span CROSS JOIN json_each(:facets) AS facet
WHERE part.at <= :last
GROUP BY span.value, facet.value, begins, of_queue, of_kind, part.ending
ON CONFLICT (span, facet, at, queue, kind, ending) DO UPDATE
SET
    jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
    {added_buckets};

-- name: add_totals
INSERT INTO {statistic_total} AS kept (queue, kind, ending, jobs, waited, ran, {buckets})
SELECT part.queue, part.kind, part.ending, sum(part.jobs), sum(part.waited), sum(part.ran), {bucket_sums}
FROM {statistic_part} AS part
WHERE part.at <= :last
GROUP BY part.queue, part.kind, part.ending
ON CONFLICT (queue, kind, ending) DO UPDATE
SET
    jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
    {added_buckets};

-- name: take_out
DELETE FROM {statistic_part} WHERE at <= :last;

-- name: forget
DELETE FROM {statistic}
WHERE
    (span, facet, at, queue, kind, ending) IN (
        SELECT old.span, old.facet, old.at, old.queue, old.kind, old.ending
        FROM json_each(:facets) AS facet
        CROSS JOIN {statistic} AS old ON old.span = :span AND old.facet = facet.value AND old.at < :before
        LIMIT :limit
    );

-- name: forget_writers
DELETE FROM {statistic_writer} WHERE at < :before;

-- name: statistics
-- The sums, plus the counts that are not rolled up yet.
WITH found AS (
    SELECT at, queue, kind, ending, jobs, waited, ran, {buckets}
    FROM {statistic}
    WHERE
        span = :span AND facet = :facet AND at >= :since AND at < :until
        AND (:queue IS NULL OR queue = :queue) AND (:kind IS NULL OR kind = :kind)
    UNION ALL
    SELECT at, queue, kind, ending, jobs, waited, ran, {buckets}
    FROM {statistic_part}
    WHERE
        at >= :since AND at < :until
        AND (:queue IS NULL OR queue = :queue) AND (:kind IS NULL OR kind = :kind)
)
SELECT CAST(json_group_array(json_array(
    begins, of_queue, of_kind, json_array({endings}), waited, ran, json_array({waits}), json_array({runs})
)) AS BLOB)
FROM (
    SELECT
        CASE WHEN :step THEN at - at % :step END AS begins,
        CASE WHEN :by_queue THEN queue END AS of_queue,
        CASE WHEN :by_kind THEN kind END AS of_kind,
        {ending_sums}, sum(waited) AS waited, sum(ran) AS ran, {bucket_sums}
    FROM found
    GROUP BY begins, of_queue, of_kind
    ORDER BY begins, of_queue, of_kind
);

-- name: endings
-- The same without histograms, which are most of each row.
WITH found AS (
    SELECT at, queue, kind, ending, jobs, waited, ran
    FROM {statistic}
    WHERE
        span = :span AND facet = :facet AND at >= :since AND at < :until
        AND (:queue IS NULL OR queue = :queue) AND (:kind IS NULL OR kind = :kind)
    UNION ALL
    SELECT at, queue, kind, ending, jobs, waited, ran
    FROM {statistic_part}
    WHERE
        at >= :since AND at < :until
        AND (:queue IS NULL OR queue = :queue) AND (:kind IS NULL OR kind = :kind)
)
SELECT CAST(json_group_array(json_array(
    begins, of_queue, of_kind, json_array({endings}), waited, ran
)) AS BLOB)
FROM (
    SELECT
        CASE WHEN :step THEN at - at % :step END AS begins,
        CASE WHEN :by_queue THEN queue END AS of_queue,
        CASE WHEN :by_kind THEN kind END AS of_kind,
        {ending_sums}, sum(waited) AS waited, sum(ran) AS ran
    FROM found
    GROUP BY begins, of_queue, of_kind
    ORDER BY begins, of_queue, of_kind
);

-- name: totals
-- The totals over all time, plus the counts that are not rolled up yet.
WITH found AS (
    SELECT queue, kind, ending, jobs, waited, ran, {buckets} FROM {statistic_total}
    UNION ALL
    SELECT queue, kind, ending, jobs, waited, ran, {buckets} FROM {statistic_part}
)
SELECT CAST(json_group_array(json_array(
    NULL, queue, kind, json_array({endings}), waited, ran, json_array({waits}), json_array({runs})
)) AS BLOB)
FROM (
    SELECT queue, kind, {ending_sums}, sum(waited) AS waited, sum(ran) AS ran, {bucket_sums}
    FROM found
    GROUP BY queue, kind
    ORDER BY queue, kind
);
