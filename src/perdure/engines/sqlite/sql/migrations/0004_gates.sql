-- release: 1
-- Gates: who has started, holds, waits and spends under which key; breakers; pauses.

-- Jobs that an operator may set free all at once.
CREATE INDEX {parked_on_hold} ON {parked} (job_id) WHERE reason = 'on hold';
CREATE INDEX {parked_breaker} ON {parked} (job_id) WHERE reason = 'circuit breaker open';

-- A rate that was met: its starts are kept for the longest stretch that anybody counts them over. Forgotten when it was
-- not used for long.
CREATE TABLE {gate} (
    name TEXT PRIMARY KEY,
    span INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {gate_until} ON {gate} (until);

CREATE TABLE {gate_start} (
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (key, at, job_id, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX {gate_start_until} ON {gate_start} (until);

-- Where a job stands in the line before a rate.
CREATE TABLE {gate_place} (
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX {gate_place_at} ON {gate_place} (key, at);
CREATE INDEX {gate_place_until} ON {gate_place} (until);

-- A hold counts while the lease of its job and token exists: whatever ends that ends the hold.
CREATE TABLE {gate_hold} (
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;

-- `size` is the limit that the job itself was told of. It keeps its turn until it has its slot.
CREATE TABLE {gate_wait} (
    turn INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    size INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX {gate_wait_job} ON {gate_wait} (key, job_id);
CREATE INDEX {gate_wait_turn} ON {gate_wait} (key, turn);

CREATE TABLE {spend} (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    job_id TEXT NOT NULL,
    is_estimate INTEGER NOT NULL
) STRICT;
CREATE INDEX {spend_name} ON {spend} (name, at);
CREATE UNIQUE INDEX {spend_estimate} ON {spend} (name, job_id) WHERE is_estimate = 1;

-- `view` is the breaker as JSON.
CREATE TABLE {breaker} (
    name TEXT PRIMARY KEY,
    view TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE {pause} (
    id TEXT PRIMARY KEY,
    queue TEXT,
    kind TEXT,
    args TEXT,
    until INTEGER,
    why TEXT,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
