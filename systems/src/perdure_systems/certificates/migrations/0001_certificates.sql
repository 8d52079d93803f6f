-- What we know of each certificate: one row a name, with the newest certificate issued for it.
CREATE TABLE certificate (
    id text PRIMARY KEY,
    common_name text NOT NULL,
    sans text NOT NULL,
    status text NOT NULL,
    owner text NOT NULL,
    requested_by text NOT NULL,
    lifetime_hours bigint NOT NULL,
    needs_csr boolean NOT NULL,
    needs_approval boolean NOT NULL,
    job_id text,
    serial text,
    pem text,
    not_after timestamptz,
    renew_at timestamptz,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX certificate_common_name ON certificate (common_name);
CREATE INDEX certificate_renew_at ON certificate (renew_at) WHERE status IN ('active', 'expired');
CREATE INDEX certificate_requested ON certificate (id) WHERE status = 'requested';

-- Agents make keys and CSRs where the certificate will be used. One that is silent for 5 minutes is offline.
CREATE TABLE certificate_agent (
    id text PRIMARY KEY,
    status text NOT NULL,
    last_seen_at timestamptz NOT NULL
);

-- Certificates that were found on the network or in a cloud, and are not ours to renew.
CREATE TABLE certificate_found (
    fingerprint text PRIMARY KEY,
    source text NOT NULL,
    subject text NOT NULL,
    not_after timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
);

-- How each loop did when it last ran, on whichever server.
CREATE TABLE certificate_loop (
    name text PRIMARY KEY,
    ran_at timestamptz NOT NULL,
    did text NOT NULL
);

-- Endpoints and how they answered the last health check.
CREATE TABLE certificate_endpoint (
    address text PRIMARY KEY,
    status text NOT NULL,
    error text,
    checked_at timestamptz NOT NULL
);
