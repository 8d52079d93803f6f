-- release: 1
-- Every time is an integer: microseconds since 1970 in UTC. A job has one record and stands in exactly one place:
-- ready, lease, parked or finished.

CREATE TABLE {job} (
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

-- Stored in the order of claiming, so that a claim reads and deletes one stretch from the front. There is no index by
-- job: a job's own row keeps queue, priority and its last turn, which together lead here.
CREATE TABLE {ready} (
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

CREATE TABLE {lease} (
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
CREATE INDEX {lease_cancel} ON {lease} (worker_id) WHERE cancel_at IS NOT NULL;

CREATE TABLE {parked} (
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
CREATE INDEX {parked_due} ON {parked} (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX {parked_standing} ON {parked} (state, queue);

CREATE TABLE {finished} (
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
CREATE INDEX {finished_standing} ON {finished} (state, queue, finished_at);
-- The few among the many: lists of them need not wade through what succeeded.
CREATE INDEX {finished_dead} ON {finished} (job_id) WHERE state = 'dead';
CREATE INDEX {finished_cancelled} ON {finished} (job_id) WHERE state = 'cancelled';

CREATE TABLE {attempt} (
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

-- expires_at NULL: held as long as the job's state says so.
CREATE TABLE {unique_hold} (
    key TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE {worker} (
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

CREATE TABLE {counter} (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO {counter} (name, value) VALUES ('token', 0);

CREATE TABLE {audit} (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    job_id TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
CREATE INDEX {audit_job} ON {audit} (job_id);
