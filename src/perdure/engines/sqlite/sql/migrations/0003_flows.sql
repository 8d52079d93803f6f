-- release: 1
-- Flows: what a job has done, whom it has spawned, what it waits for, how far it is.

ALTER TABLE {job} ADD COLUMN parent_id TEXT;
ALTER TABLE {job} ADD COLUMN is_parent INTEGER NOT NULL DEFAULT 0;
-- What a waiting job waits for besides the time: event:NAME or family:KEY.
ALTER TABLE {parked} ADD COLUMN awaits TEXT;

-- `turn` keeps the order in which steps were begun.
CREATE TABLE {step} (
    job_id TEXT NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    result TEXT,
    note TEXT,
    tries INTEGER NOT NULL,
    due_at INTEGER,
    begun_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE {family} (
    parent_id TEXT NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,
    total INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    quorum INTEGER,
    on_end TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (parent_id, key)
) STRICT, WITHOUT ROWID;

-- A child's end is counted once, and what it brought is kept here, whatever becomes of the job's own record.
CREATE TABLE {child} (
    parent_id TEXT NOT NULL,
    family TEXT NOT NULL,
    number INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    fate TEXT,
    result TEXT,
    error TEXT,
    PRIMARY KEY (parent_id, family, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX {child_job} ON {child} (job_id);

CREATE TABLE {event} (
    name TEXT PRIMARY KEY,
    payload TEXT,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE {waiter} (
    event TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (event, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX {waiter_job} ON {waiter} (job_id);

-- Claims that were taken away from a worker that still runs them: it is told, and then they are forgotten.
CREATE TABLE {revoked} (
    worker_id INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    why TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, job_id, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE {progress} (
    job_id TEXT PRIMARY KEY,
    current REAL NOT NULL,
    total REAL,
    note TEXT,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE {line} (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;
