-- name: start
INSERT INTO {bulk} AS b (id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped,
                         created_at, changed_at, outcome, cursor, token, leased_until)
VALUES (%(id)s::text, %(action)s::text, %(filter)s::text, %(params)s::text, %(actor)s::text, %(why)s::text,
        %(source)s::text, 'running', %(jobs)s::bigint, %(capped)s::bool, 0, 0, 0,
        coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()), %(outcome)s::text,
        %(cursor)s::uuid, 0, '-infinity')
ON CONFLICT DO NOTHING
RETURNING b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen,
          b.done, b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text,
          b.token;

-- name: take
-- The oldest running command without a living runner, or the given one. A runner may always resume its own command.
UPDATE {bulk} b
SET runner = %(runner)s::text, token = b.token + 1,
    leased_until = coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lease)s::float8)
WHERE b.id = (
    SELECT f.id FROM {bulk} f
    WHERE f.state = 'running' AND (f.leased_until <= coalesce(%(now)s::timestamptz, now()) OR f.runner = %(runner)s::text)
      AND (%(id)s::text IS NULL OR f.id = %(id)s::text)
    ORDER BY f.created_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen,
          b.done, b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text,
          b.token;

-- name: hold
SELECT FROM {bulk} WHERE id = %(id)s::text AND state = 'running' AND token = %(token)s::bigint FOR UPDATE;

-- name: advance
UPDATE {bulk} b
SET cursor = %(cursor)s::uuid, state = %(state)s::text, seen = %(seen)s::bigint, done = %(done)s::bigint,
    skipped = %(skipped)s::bigint, outcome = %(outcome)s::text, error = %(error)s::text,
    changed_at = coalesce(%(now)s::timestamptz, now()),
    finished_at = CASE WHEN %(state)s::text <> 'running' THEN coalesce(%(now)s::timestamptz, now()) END,
    leased_until = coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lease)s::float8)
WHERE b.id = %(id)s::text
RETURNING b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen,
          b.done, b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text,
          b.token;

-- name: stop
UPDATE {bulk} b
SET state = 'stopped', changed_at = coalesce(%(now)s::timestamptz, now()), finished_at = coalesce(%(now)s::timestamptz, now())
WHERE b.id = %(id)s::text AND b.state = 'running'
RETURNING b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen,
          b.done, b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text,
          b.token;

-- name: bulk
SELECT b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen, b.done,
       b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text, b.token
FROM {bulk} b WHERE b.id = %(id)s::text;

-- name: bulks
SELECT b.id, b.action, b.filter, b.params, b.actor, b.why, b.source, b.state, b.jobs, b.capped, b.seen, b.done,
       b.skipped, b.created_at, b.changed_at, b.finished_at, b.error, b.outcome, b.cursor::text, b.token
FROM {bulk} b
WHERE %(before)s::text IS NULL
   OR (b.created_at, b.id) < (SELECT c.created_at, c.id FROM {bulk} c WHERE c.id = %(before)s::text)
ORDER BY b.created_at DESC, b.id DESC LIMIT %(limit)s::bigint;
