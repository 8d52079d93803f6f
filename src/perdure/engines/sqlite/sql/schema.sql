CREATE TABLE perdure_attempt (
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reason TEXT NOT NULL,
    worker TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_type TEXT NOT NULL,
    message TEXT NOT NULL,
    traceback TEXT,
    next_at INTEGER,
    PRIMARY KEY (job_id, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    job_id TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;

CREATE INDEX perdure_audit_job ON perdure_audit (job_id);

CREATE TABLE perdure_counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_finished (
    job_id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    note TEXT,
    started_at INTEGER,
    finished_at INTEGER NOT NULL,
    worker TEXT,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    result TEXT,
    warnings TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_finished_cancelled ON perdure_finished (job_id) WHERE state = 'cancelled';

CREATE INDEX perdure_finished_dead ON perdure_finished (job_id) WHERE state = 'dead';

CREATE INDEX perdure_finished_standing ON perdure_finished (state, queue, finished_at);

CREATE TABLE perdure_job (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    args TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER,
    max_attempts INTEGER,
    crash_limit INTEGER NOT NULL,
    unknown_since INTEGER, -- no handler was found
    unique_key TEXT,
    unique_states TEXT,
    unique_dead_for INTEGER,
    tags TEXT,
    meta TEXT,
    turn INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_lease (
    job_id TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    queue TEXT NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    cancel_at INTEGER,
    cancel_why TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_lease_cancel ON perdure_lease (worker_id) WHERE cancel_at IS NOT NULL;

CREATE TABLE perdure_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    release INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE perdure_parked (
    job_id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    note TEXT,
    due_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    parked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_parked_due ON perdure_parked (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX perdure_parked_standing ON perdure_parked (state, queue);

CREATE TABLE perdure_ready (
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (queue, priority, turn, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_unique_hold (
    key TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_worker (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started INTEGER NOT NULL,
    queues TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    dead_at INTEGER
) STRICT;
