-- release: 1
-- Alerts: rules and channels, made at run time or declared by code; what rules have found; the notices that say so, with
-- a delivery for each channel. One row of `alert_book` fences evaluations.
CREATE TABLE {alert_rule} (
    name TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER,
    paused_at INTEGER,
    paused_until INTEGER,
    paused_by TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE {alert_channel} (
    name TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER,
    sent_at INTEGER,
    failed_at INTEGER,
    error TEXT,
    failures INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE {alert_book} (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    memory TEXT NOT NULL
) STRICT;

CREATE TABLE {alert} (
    id TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    key TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    is_live INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    alert TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {alert_opened} ON {alert} (opened_at, id);
CREATE UNIQUE INDEX {alert_live} ON {alert} (rule, key) WHERE is_live;

CREATE TABLE {alert_notice} (
    id TEXT PRIMARY KEY,
    rule TEXT,
    at INTEGER NOT NULL,
    notice TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {alert_notice_at} ON {alert_notice} (at, id);

CREATE TABLE {alert_delivery} (
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    job_id TEXT NOT NULL,
    state TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (notice_id, channel)
) STRICT, WITHOUT ROWID;
CREATE INDEX {alert_delivery_pending} ON {alert_delivery} (changed_at) WHERE state = 'pending';

CREATE TABLE {budget_limit} (
    name TEXT PRIMARY KEY,
    limits TEXT NOT NULL,
    declared_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX {fire_missed} ON {fire} (at) WHERE fate = 'missed';
