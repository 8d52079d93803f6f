-- release: 1
-- Alerts: rules and channels, made at run time or declared by code; what rules have found; the notices that say so, with
-- a delivery for each channel. One row of `alert_book` fences evaluations.
CREATE TABLE {alert_rule} (
    name text COLLATE "C" PRIMARY KEY,
    rule text NOT NULL,
    source text NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    declared_at timestamptz,
    paused_at timestamptz,
    paused_until timestamptz,
    paused_by text
);

CREATE TABLE {alert_channel} (
    name text COLLATE "C" PRIMARY KEY,
    channel text NOT NULL,
    source text NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    declared_at timestamptz,
    sent_at timestamptz,
    failed_at timestamptz,
    error text,
    failures bigint NOT NULL DEFAULT 0
);

CREATE TABLE {alert_book} (
    id integer PRIMARY KEY CHECK (id = 1),
    version bigint NOT NULL,
    memory text NOT NULL
);

CREATE TABLE {alert} (
    id text COLLATE "C" PRIMARY KEY,
    rule text NOT NULL,
    key text NOT NULL,
    is_open boolean NOT NULL,
    is_live boolean NOT NULL,
    opened_at timestamptz NOT NULL,
    alert text NOT NULL
);
CREATE INDEX ON {alert} (opened_at, id);
CREATE UNIQUE INDEX ON {alert} (rule, key) WHERE is_live;

CREATE TABLE {alert_notice} (
    id text COLLATE "C" PRIMARY KEY,
    rule text,
    at timestamptz NOT NULL,
    notice text NOT NULL
);
CREATE INDEX ON {alert_notice} (at, id);

CREATE TABLE {alert_delivery} (
    notice_id text NOT NULL,
    channel text NOT NULL,
    job_id text NOT NULL,
    state text NOT NULL,
    changed_at timestamptz NOT NULL,
    error text,
    PRIMARY KEY (notice_id, channel)
);
CREATE INDEX ON {alert_delivery} (changed_at) WHERE state = 'pending';

CREATE TABLE {budget_limit} (
    name text COLLATE "C" PRIMARY KEY,
    limits text NOT NULL,
    declared_at timestamptz NOT NULL
);

CREATE INDEX ON {fire} (at) WHERE fate = 'missed';
