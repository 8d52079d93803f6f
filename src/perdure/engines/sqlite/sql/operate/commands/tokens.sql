-- name: add
INSERT INTO {access_token} (id, name, scope, digest, created_at, created_by, expires_at)
VALUES (:id, :name, :scope, :digest, :now, :actor, :expires_at)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING;

-- name: tokens
SELECT id, name, scope, created_at, created_by, expires_at, revoked_at, last_used_at
FROM {access_token} ORDER BY created_at, id;

-- name: revoke
UPDATE {access_token} SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING name;

-- name: end_sessions
DELETE FROM {access_session} WHERE token_id = :id;

-- name: live
SELECT
    id, name, scope, created_at, created_by, expires_at, revoked_at, last_used_at, digest,
    COALESCE(last_used_at > :noted_after AND last_used_at <= :now, 0)
FROM {access_token}
WHERE digest = :digest AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: note_use
-- A time ahead of the clock comes from before the clock was set back: it is replaced.
UPDATE {access_token} SET last_used_at = :now
WHERE id = :id AND NOT COALESCE(last_used_at > :noted_after AND last_used_at <= :now, 0);

-- name: open_session
INSERT INTO {access_session} (digest, token_id, created_at, expires_at) VALUES (:digest, :token_id, :now, :until);

-- name: forget_sessions
DELETE FROM {access_session} WHERE expires_at <= :now;

-- name: session
SELECT
    token.id, token.name, token.scope, token.created_at, token.created_by, token.expires_at, token.revoked_at,
    token.last_used_at, session.digest, COALESCE(token.last_used_at > :noted_after AND token.last_used_at <= :now, 0)
FROM {access_session} AS session CROSS JOIN {access_token} AS token ON token.id = session.token_id
WHERE
    session.digest = :digest AND session.expires_at > :now AND token.revoked_at IS NULL
    AND (token.expires_at IS NULL OR token.expires_at > :now);

-- name: close_session
DELETE FROM {access_session} WHERE digest = :digest;

-- name: add_key
INSERT INTO {access_key} (name, value, created_at) VALUES (:name, :value, :now) ON CONFLICT DO NOTHING;

-- name: key
SELECT value FROM {access_key} WHERE name = :name;
