-- name: each_group
-- Fingerprints of dead letters, up to a limit: one index seek for each.
WITH RECURSIVE each_group (fingerprint) AS (
    (SELECT f.fingerprint FROM {finished} f WHERE f.state = 'dead' AND f.fingerprint IS NOT NULL
     ORDER BY f.fingerprint LIMIT 1)
    UNION ALL
    SELECT n.fingerprint FROM each_group g CROSS JOIN LATERAL (
        SELECT f.fingerprint FROM {finished} f WHERE f.state = 'dead' AND f.fingerprint > g.fingerprint
        ORDER BY f.fingerprint LIMIT 1
    ) n
)
SELECT fingerprint FROM each_group LIMIT %(most)s::int + 1;

-- name: groups
-- A group that has failed again since its last note counts as failed at that time.
SELECT g.fingerprint, g.kind, g.error_type, g.message, g.first_at, greatest(g.last_at, c.last_at) AS last_at
FROM unnest(%(fingerprints)s::text[]) AS i (fingerprint)
CROSS JOIN LATERAL (SELECT * FROM {failure_group} WHERE fingerprint = i.fingerprint OFFSET 0) g
LEFT JOIN LATERAL (
    SELECT max(f.last_at) AS last_at FROM (
        SELECT last_at FROM {failure_count} WHERE fingerprint = i.fingerprint ORDER BY hour DESC, shard DESC LIMIT 16
    ) f
) c ON true
WHERE %(kind)s::text IS NULL OR g.kind = %(kind)s::text
ORDER BY last_at DESC, g.fingerprint DESC;

-- name: count_dead
SELECT i.fingerprint, c.jobs, c.newest::text
FROM unnest(%(fingerprints)s::text[]) AS i (fingerprint)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, (array_agg(d.job_id))[1] AS newest
    FROM (
        SELECT job_id FROM {finished} WHERE state = 'dead' AND fingerprint = i.fingerprint
        ORDER BY job_id DESC LIMIT %(cap)s::int + 1
    ) d
) c;

-- name: hours
SELECT c.fingerprint, c.hour, sum(c.deaths)::bigint, sum(c.failures)::bigint
FROM unnest(%(fingerprints)s::text[]) AS i (fingerprint)
CROSS JOIN LATERAL (
    SELECT * FROM {failure_count}
    WHERE (fingerprint, hour) >= (i.fingerprint, %(since)s::timestamptz) AND fingerprint <= i.fingerprint OFFSET 0
) c
GROUP BY c.fingerprint, c.hour;

-- name: unprinted
-- Dead letters without a fingerprint, with their last error.
SELECT f.job_id::text, j.kind, a.token, coalesce(a.error_type, ''), coalesce(a.message, f.reason), f.finished_at
FROM (
    SELECT job_id, reason, finished_at FROM {finished} WHERE state = 'dead' AND fingerprint IS NULL
    ORDER BY job_id LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
) f
CROSS JOIN LATERAL (SELECT kind FROM {job} WHERE id = f.job_id OFFSET 0) j
LEFT JOIN LATERAL (
    SELECT token, error_type, message FROM {attempt} WHERE job_id = f.job_id ORDER BY token DESC LIMIT 1
) a ON true;

-- name: print_dead
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(tokens)s::bigint[], %(fingerprints)s::text[], %(kinds)s::text[], %(types)s::text[],
        %(messages)s::text[], %(times)s::timestamptz[]
    ) AS i (id, token, fingerprint, kind, error_type, message, at)
), grouped AS (
    INSERT INTO {failure_group} AS g (fingerprint, kind, error_type, message, first_at, last_at)
    SELECT fingerprint, min(kind), min(error_type), min(message), min(at), max(at)
    FROM input GROUP BY fingerprint ORDER BY fingerprint
    ON CONFLICT (fingerprint) DO UPDATE SET first_at = least(g.first_at, excluded.first_at),
        last_at = greatest(g.last_at, excluded.last_at)
), tried AS (
    UPDATE {attempt} a SET fingerprint = i.fingerprint FROM input i WHERE a.job_id = i.id AND a.token = i.token
)
UPDATE {finished} f SET fingerprint = i.fingerprint FROM input i WHERE f.job_id = i.id;
