-- name: start
INSERT INTO {bulk} (
    id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at, changed_at,
    outcome, cursor, token, leased_until
)
VALUES (
    :id, :action, :filter, :params, :actor, :why, :source, 'running', :jobs, :capped, 0, 0, 0, :now, :now, :outcome,
    :cursor, 0, 0
)
ON CONFLICT DO NOTHING;

-- name: free
-- The oldest running command without a living runner, or the given one. A runner may always resume its own command.
SELECT id FROM {bulk}
WHERE state = 'running' AND (leased_until <= :now OR runner = :runner) AND (:id IS NULL OR id = :id)
ORDER BY created_at LIMIT 1;

-- name: take
UPDATE {bulk} SET runner = :runner, token = token + 1, leased_until = :until
WHERE id = :id AND state = 'running' AND (leased_until <= :now OR runner = :runner)
RETURNING id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at,
    changed_at, finished_at, error, outcome, cursor, token;

-- name: held
SELECT 1 FROM {bulk} WHERE id = :id AND state = 'running' AND token = :token;

-- name: advance
UPDATE {bulk}
SET cursor = :cursor, state = :state, seen = :seen, done = :done, skipped = :skipped, outcome = :outcome, error = :error,
    changed_at = :now, finished_at = CASE WHEN :state <> 'running' THEN :now END, leased_until = :until
WHERE id = :id
RETURNING id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at,
    changed_at, finished_at, error, outcome, cursor, token;

-- name: stop
UPDATE {bulk} SET state = 'stopped', changed_at = :now, finished_at = :now
WHERE id = :id AND state = 'running'
RETURNING id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at,
    changed_at, finished_at, error, outcome, cursor, token;

-- name: bulk
SELECT id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at,
    changed_at, finished_at, error, outcome, cursor, token
FROM {bulk} WHERE id = :id;

-- name: bulks
SELECT id, action, filter, params, actor, why, source, state, jobs, capped, seen, done, skipped, created_at,
    changed_at, finished_at, error, outcome, cursor, token
FROM {bulk}
WHERE :before IS NULL OR (created_at, id) < (SELECT created_at, id FROM {bulk} WHERE id = :before)
ORDER BY created_at DESC, id DESC LIMIT :limit;
