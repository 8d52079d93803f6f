-- name: add
-- A repeated flush changes no writer, and its counts are not added. Rows are changed in one order, so that two workers
-- wait for each other and never deadlock.
WITH noted AS (
    INSERT INTO {statistic_writer} AS kept (writer, flush, at)
    VALUES (%(writer)s::text, %(flush)s::bigint, coalesce(%(now)s::timestamptz, now()))
    ON CONFLICT (writer) DO UPDATE SET flush = excluded.flush, at = excluded.at WHERE kept.flush < excluded.flush
    RETURNING true
), added AS (
    INSERT INTO {statistic_part} AS kept (at, queue, kind, ending, jobs, waited, ran, {buckets})
    SELECT row.at, row.queue, row.kind, row.ending, row.jobs, row.waited, row.ran, {bucket_values}
    FROM json_to_recordset(%(rows)s::json) AS row (
        at timestamptz, queue text, kind text, ending text, jobs integer, waited double precision,
        ran double precision, waits integer[], runs integer[]
    )
    WHERE EXISTS (SELECT FROM noted)
    ORDER BY row.at, row.queue COLLATE "C", row.kind COLLATE "C", row.ending COLLATE "C"
    ON CONFLICT (at, queue, kind, ending) DO UPDATE
    SET jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
        {added_buckets}
)
SELECT count(*) FROM noted;

-- name: roll_up
-- Rows that another process is adding are skipped until the next time. Sums are changed in one order.
WITH RECURSIVE minute (at) AS (
    (SELECT p.at FROM {statistic_part} p WHERE p.at < coalesce(%(now)s::timestamptz, now()) - %(over)s::interval ORDER BY p.at LIMIT 1)
    UNION ALL
    SELECT n.at FROM minute m CROSS JOIN LATERAL (
        SELECT p.at FROM {statistic_part} p
        WHERE p.at > m.at AND p.at < coalesce(%(now)s::timestamptz, now()) - %(over)s::interval ORDER BY p.at LIMIT 1
    ) n
), chosen AS MATERIALIZED (
    SELECT at FROM minute LIMIT %(limit)s::int
), picked AS MATERIALIZED (
    SELECT p.ctid AS place FROM {statistic_part} p
    WHERE p.at >= (SELECT min(at) FROM chosen) AND p.at <= (SELECT max(at) FROM chosen)
    ORDER BY p.at, p.queue, p.kind, p.ending FOR UPDATE SKIP LOCKED
), part AS (
    DELETE FROM {statistic_part} WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) RETURNING *
), rolled AS (
    INSERT INTO {statistic} AS kept (span, facet, at, queue, kind, ending, jobs, waited, ran, {buckets})
    SELECT w.span, f.facet, date_bin(w.span, part.at, timestamptz 'epoch') AS begins,
           CASE WHEN f.facet IN ('queue', 'both') THEN part.queue ELSE '' END AS of_queue,
           CASE WHEN f.facet IN ('kind', 'both') THEN part.kind ELSE '' END AS of_kind,
           part.ending, sum(part.jobs), sum(part.waited), sum(part.ran), {bucket_sums}
    FROM part
    CROSS JOIN unnest(%(spans)s::interval[]) AS w (span)
    CROSS JOIN unnest(%(facets)s::text[]) AS f (facet)
    GROUP BY w.span, f.facet, begins, of_queue, of_kind, part.ending
    ORDER BY w.span, f.facet, begins, of_queue, of_kind, part.ending
    ON CONFLICT (span, facet, at, queue, kind, ending) DO UPDATE
    SET jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
        {added_buckets}
), totalled AS (
    INSERT INTO {statistic_total} AS kept (queue, kind, ending, jobs, waited, ran, {buckets})
    SELECT part.queue, part.kind, part.ending, sum(part.jobs), sum(part.waited), sum(part.ran), {bucket_sums}
    FROM part
    GROUP BY part.queue, part.kind, part.ending
    ORDER BY part.queue, part.kind, part.ending
    ON CONFLICT (queue, kind, ending) DO UPDATE
    SET jobs = kept.jobs + excluded.jobs, waited = kept.waited + excluded.waited, ran = kept.ran + excluded.ran,
        {added_buckets}
)
SELECT count(DISTINCT at) FROM part;

-- name: forget
DELETE FROM {statistic} WHERE ctid = ANY (ARRAY(
    SELECT s.place FROM unnest(%(facets)s::text[]) AS f (facet)
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {statistic}
        WHERE span = %(span)s::interval AND facet = f.facet
        AND at < coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval
        ORDER BY at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
    ) s LIMIT %(limit)s::int
))
RETURNING true;

-- name: forget_writers
DELETE FROM {statistic_writer} WHERE at < coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval;

-- name: statistics
-- The sums, plus the counts that are not rolled up yet.
WITH found AS (
    SELECT at, queue, kind, ending, jobs, waited, ran, {buckets}
    FROM {statistic}
    WHERE span = %(span)s::interval AND facet = %(facet)s::text
    AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
    AND (%(queue)s::text IS NULL OR queue = %(queue)s::text) AND (%(kind)s::text IS NULL OR kind = %(kind)s::text)
    UNION ALL
    SELECT at, queue, kind, ending, jobs, waited, ran, {buckets}
    FROM {statistic_part}
    WHERE at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
    AND (%(queue)s::text IS NULL OR queue = %(queue)s::text) AND (%(kind)s::text IS NULL OR kind = %(kind)s::text)
), summed AS (
    SELECT date_bin(%(step)s::interval, at, timestamptz 'epoch') AS begins,
           CASE WHEN %(by_queue)s::boolean THEN queue END AS of_queue,
           CASE WHEN %(by_kind)s::boolean THEN kind END AS of_kind,
           {ending_sums}, sum(waited) AS waited, sum(ran) AS ran, {bucket_sums}
    FROM found GROUP BY begins, of_queue, of_kind
)
SELECT begins, of_queue, of_kind, concat_ws(',', {endings}), waited, ran,
       concat_ws(',', {waits}), concat_ws(',', {runs})
FROM summed ORDER BY begins, of_queue, of_kind;

-- name: endings
-- The same without histograms, which are most of each row.
WITH found AS (
    SELECT at, queue, kind, ending, jobs, waited, ran
    FROM {statistic}
    WHERE span = %(span)s::interval AND facet = %(facet)s::text
    AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
    AND (%(queue)s::text IS NULL OR queue = %(queue)s::text) AND (%(kind)s::text IS NULL OR kind = %(kind)s::text)
    UNION ALL
    SELECT at, queue, kind, ending, jobs, waited, ran
    FROM {statistic_part}
    WHERE at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
    AND (%(queue)s::text IS NULL OR queue = %(queue)s::text) AND (%(kind)s::text IS NULL OR kind = %(kind)s::text)
), summed AS (
    SELECT date_bin(%(step)s::interval, at, timestamptz 'epoch') AS begins,
           CASE WHEN %(by_queue)s::boolean THEN queue END AS of_queue,
           CASE WHEN %(by_kind)s::boolean THEN kind END AS of_kind,
           {ending_sums}, sum(waited) AS waited, sum(ran) AS ran
    FROM found GROUP BY begins, of_queue, of_kind
)
SELECT begins, of_queue, of_kind, concat_ws(',', {endings}), waited, ran
FROM summed ORDER BY begins, of_queue, of_kind;

-- name: totals
-- The totals over all time, plus the counts that are not rolled up yet.
WITH found AS (
    SELECT queue, kind, ending, jobs, waited, ran, {buckets} FROM {statistic_total}
    UNION ALL
    SELECT queue, kind, ending, jobs, waited, ran, {buckets} FROM {statistic_part}
), summed AS (
    SELECT queue, kind, {ending_sums}, sum(waited) AS waited, sum(ran) AS ran, {bucket_sums}
    FROM found GROUP BY queue, kind
)
SELECT NULL::timestamptz, queue, kind, concat_ws(',', {endings}), waited, ran,
       concat_ws(',', {waits}), concat_ws(',', {runs})
FROM summed ORDER BY queue, kind;
