-- name: add
WITH added AS (
    INSERT INTO {access_token} (id, name, scope, digest, created_at, created_by, expires_at)
    VALUES (%(id)s::text, %(name)s::text, %(scope)s::text, %(digest)s::text, coalesce(%(now)s::timestamptz, now()),
            %(actor)s::text, %(expires_at)s::timestamptz)
    ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
    RETURNING *
)
SELECT a.id, a.name, a.scope, a.created_at, a.created_by, a.expires_at, a.revoked_at, a.last_used_at FROM added a;

-- name: tokens
SELECT id, name, scope, created_at, created_by, expires_at, revoked_at, last_used_at
FROM {access_token} ORDER BY created_at, id;

-- name: revoke
WITH revoked AS (
    UPDATE {access_token} SET revoked_at = coalesce(%(now)s::timestamptz, now())
    WHERE id = %(id)s::text AND revoked_at IS NULL RETURNING id, name, revoked_at
), ended AS (
    DELETE FROM {access_session} s USING revoked r WHERE s.token_id = r.id
)
SELECT name FROM revoked;

-- name: live
SELECT t.id, t.name, t.scope, t.created_at, t.created_by, t.expires_at, t.revoked_at, t.last_used_at, t.digest,
       coalesce(t.last_used_at > c.now - {TOKEN_USE_NOTED_EVERY} AND t.last_used_at <= c.now, false)
FROM {access_token} t, (SELECT coalesce(%(now)s::timestamptz, now()) AS now) c
WHERE t.digest = %(digest)s::text AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > c.now);

-- name: note_use
-- A time ahead of the clock comes from before the clock was set back: it is replaced.
UPDATE {access_token} t SET last_used_at = c.now
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) c
WHERE t.id = %(id)s::text
  AND NOT coalesce(t.last_used_at > c.now - {TOKEN_USE_NOTED_EVERY} AND t.last_used_at <= c.now, false);

-- name: open_session
WITH over AS (
    DELETE FROM {access_session} WHERE expires_at <= coalesce(%(now)s::timestamptz, now())
)
INSERT INTO {access_session} (digest, token_id, created_at, expires_at)
VALUES (%(digest)s::text, %(token_id)s::text, coalesce(%(now)s::timestamptz, now()),
        coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lifetime)s::float8));

-- name: session
SELECT t.id, t.name, t.scope, t.created_at, t.created_by, t.expires_at, t.revoked_at, t.last_used_at, s.digest,
       coalesce(t.last_used_at > c.now - {TOKEN_USE_NOTED_EVERY} AND t.last_used_at <= c.now, false)
FROM {access_session} s JOIN {access_token} t ON t.id = s.token_id,
     (SELECT coalesce(%(now)s::timestamptz, now()) AS now) c
WHERE s.digest = %(digest)s::text AND s.expires_at > c.now AND t.revoked_at IS NULL
  AND (t.expires_at IS NULL OR t.expires_at > c.now);

-- name: close_session
DELETE FROM {access_session} WHERE digest = %(digest)s::text;

-- name: add_key
INSERT INTO {access_key} (name, value, created_at)
VALUES (%(name)s::text, %(value)s::text, coalesce(%(now)s::timestamptz, now())) ON CONFLICT DO NOTHING;

-- name: key
SELECT value FROM {access_key} WHERE name = %(name)s::text;
