-- release: 1
-- Access tokens and sessions of people who logged in. Secrets are not stored: a digest is the SHA-256 of one, in hex.
CREATE TABLE {access_token} (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX {access_token_name} ON {access_token} (name) WHERE revoked_at IS NULL;

CREATE TABLE {access_session} (
    digest TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {access_session_token} ON {access_session} (token_id);
CREATE INDEX {access_session_expires} ON {access_session} (expires_at);

-- Keys that all processes on this database share, such as the one that signs forms. None of them lets a caller in.
CREATE TABLE {access_key} (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
