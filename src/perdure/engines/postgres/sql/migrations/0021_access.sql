-- release: 1
-- Access tokens and sessions of people who logged in. Secrets are not stored: a digest is the SHA-256 of one, in hex.
CREATE TABLE {access_token} (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
CREATE UNIQUE INDEX ON {access_token} (name) WHERE revoked_at IS NULL;

CREATE TABLE {access_session} (
    digest text COLLATE "C" PRIMARY KEY,
    token_id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON {access_session} (token_id);
CREATE INDEX ON {access_session} (expires_at);

-- Keys that all processes on this database share, such as the one that signs forms. None of them lets a caller in.
CREATE TABLE {access_key} (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL,
    created_at timestamptz NOT NULL
);
