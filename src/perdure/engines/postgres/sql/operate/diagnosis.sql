-- name: waiting
SELECT queue, min(since) FROM {ready} GROUP BY queue ORDER BY queue;

-- name: paused
-- Jobs held back for one of the reasons, by kind; this many held-back jobs are looked at.
SELECT s.reason, j.kind, max(s.note), count(*), min(s.since)
FROM (
    SELECT p.job_id, p.reason, p.note, p.since FROM {parked} p WHERE p.state = 'paused' LIMIT %(cap)s::bigint
) s CROSS JOIN LATERAL (SELECT kind FROM {job} WHERE id = s.job_id OFFSET 0) j
WHERE s.reason = ANY (%(reasons)s::text[])
GROUP BY s.reason, j.kind ORDER BY s.reason, j.kind;

-- name: settings
-- The server's own configuration: perdure's sessions raise synchronous_commit for themselves.
SELECT name, reset_val FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit');

-- name: bloat
-- Tables that every job passes through: dead rows there are read repeatedly until vacuum removes them.
SELECT relname::text, n_live_tup, n_dead_tup FROM pg_stat_all_tables
WHERE schemaname = %(schema)s::text
    AND relname IN (%(prefix)s::text || 'ready', %(prefix)s::text || 'lease', %(prefix)s::text || 'parked')
ORDER BY relname;

-- name: oldest_snapshot
-- The session, anywhere on this server, that has kept vacuum waiting the longest.
SELECT pid, coalesce(application_name, ''), coalesce(state, backend_type, ''),
       extract(epoch FROM clock_timestamp() - xact_start)::float8
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid()
    AND backend_type NOT IN ('autovacuum worker', 'walsender')
ORDER BY xact_start LIMIT 1;

-- name: prepared
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(prepared))::float8, 0) FROM pg_prepared_xacts;

-- name: connections
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       (SELECT sum(reset_val::bigint)::bigint FROM pg_settings
        WHERE name IN ('superuser_reserved_connections', 'reserved_connections')),
       (SELECT reset_val::bigint FROM pg_settings WHERE name = 'max_connections');

-- name: parked_ahead
SELECT count(*), max(parked_at) - coalesce(%(now)s::timestamptz, now()) FROM {parked}
WHERE parked_at > coalesce(%(now)s::timestamptz, now()) + %(slack)s::interval AND due_at IS NOT NULL
AND state IN ('retrying', 'waiting', 'paused');

-- name: redate_parked
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::timestamptz, now()) AS now
), chosen AS MATERIALIZED (
    SELECT job_id, due_at, parked_at FROM {parked}
    WHERE parked_at > (SELECT now FROM t) + %(slack)s::interval AND due_at IS NOT NULL AND state IN ('retrying', 'waiting', 'paused')
    ORDER BY job_id LIMIT %(limit)s::int FOR UPDATE
), moved AS (
    UPDATE {parked} p SET due_at = c.due_at - (c.parked_at - t.now), parked_at = t.now
    FROM chosen c CROSS JOIN t WHERE p.job_id = c.job_id
), steps AS (
    UPDATE {step} s SET due_at = s.due_at - (s.changed_at - t.now), changed_at = t.now
    FROM chosen c CROSS JOIN t
    WHERE s.job_id = c.job_id AND s.state = 'begun' AND s.kind IN ('call', 'sleep', 'poll') AND s.due_at IS NOT NULL
    AND s.changed_at > t.now + %(slack)s::interval
), noted AS (
    INSERT INTO {audit} (at, actor, why, source, jobs, bulk_id, action, job_id, details)
    SELECT t.now, %(actor)s::text, %(why)s::text, %(source)s::text, 1, %(bulk)s::text, 'redate', c.job_id,
           jsonb_build_object('before', jsonb_build_object('due_at', c.due_at),
                              'after', jsonb_build_object('due_at', c.due_at - (c.parked_at - t.now)))
    FROM chosen c CROSS JOIN t ORDER BY c.job_id
)
SELECT job_id::text FROM chosen ORDER BY job_id;
