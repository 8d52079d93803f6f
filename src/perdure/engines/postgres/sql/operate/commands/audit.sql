-- name: entries_by_time
SELECT e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id
FROM {audit} e
WHERE (e.at, e.id) >= (%(since)s::timestamptz, 0) AND (e.at, e.id) < (%(until_at)s::timestamptz, %(until_id)s::bigint)

-- name: entries_by_action
-- The action is a range, because only the index by action can then give this order: a rare action must not be searched
-- for among all entries.
SELECT e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id
FROM {audit} e
WHERE (e.action, e.at, e.id) >= (%(action)s::text, %(since)s::timestamptz, 0)
  AND (e.action, e.at, e.id) < (%(action)s::text, %(until_at)s::timestamptz, %(until_id)s::bigint)

-- name: entries_by_actor
SELECT e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id
FROM {audit} e
WHERE e.actor <> {ACTOR_SYSTEM} AND (e.actor, e.at, e.id) >= (%(actor)s::text, %(since)s::timestamptz, 0)
  AND (e.actor, e.at, e.id) < (%(actor)s::text, %(until_at)s::timestamptz, %(until_id)s::bigint)

-- name: entries_by_job_id
-- A job has few entries, so they are sorted.
SELECT e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id
FROM (SELECT * FROM {audit} a WHERE a.job_id = %(job_id)s::uuid OFFSET 0) e
WHERE (e.at, e.id) >= (%(since)s::timestamptz, 0) AND (e.at, e.id) < (%(until_at)s::timestamptz, %(until_id)s::bigint)

-- name: entries_by_bulk
SELECT e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id
FROM {audit} e
WHERE e.bulk_id IS NOT NULL AND (e.bulk_id, e.at, e.id) >= (%(bulk)s::text, %(since)s::timestamptz, 0)
  AND (e.bulk_id, e.at, e.id) < (%(bulk)s::text, %(until_at)s::timestamptz, %(until_id)s::bigint)

-- name: of_bulk
e.bulk_id = %(bulk)s::text

-- name: of_source
(e.source = %(source)s::text OR starts_with(e.source, %(source)s::text || ' '))

-- name: of_actor
e.actor = %(actor)s::text

-- name: of_action
e.action = %(action)s::text

-- name: newest_by_time
ORDER BY e.at DESC, e.id DESC LIMIT %(limit)s::bigint

-- name: newest_by_job_id
ORDER BY e.at DESC, e.id DESC LIMIT %(limit)s::bigint

-- name: newest_by_bulk
ORDER BY e.bulk_id DESC, e.at DESC, e.id DESC LIMIT %(limit)s::bigint

-- name: newest_by_actor
ORDER BY e.actor DESC, e.at DESC, e.id DESC LIMIT %(limit)s::bigint

-- name: newest_by_action
ORDER BY e.action DESC, e.at DESC, e.id DESC LIMIT %(limit)s::bigint

-- name: at
SELECT e.at FROM {audit} e WHERE e.id = %(id)s::bigint;

-- name: write
INSERT INTO {audit} AS e (at, actor, why, source, jobs, bulk_id, action, job_id, details)
VALUES (coalesce(%(now)s::timestamptz, clock_timestamp()), %(actor)s::text, %(why)s::text, %(source)s::text,
        %(jobs)s::integer, %(bulk)s::text, %(action)s::text, %(job_id)s::uuid, %(details)s::jsonb)
RETURNING e.id, e.at, e.actor, e.action, e.job_id::text, e.details::text, e.why, e.source, e.jobs, e.bulk_id;

-- name: allow_pruning
-- Entries up to this time may be deleted from now on.
INSERT INTO {audit_retention} AS r (one, pruned_to)
VALUES (1, coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(kept)s::float8))
ON CONFLICT (one) DO UPDATE SET pruned_to = greatest(r.pruned_to, excluded.pruned_to);

-- name: forget
DELETE FROM {audit} WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM {audit} e WHERE e.at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(kept)s::float8)
    ORDER BY e.at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
));
