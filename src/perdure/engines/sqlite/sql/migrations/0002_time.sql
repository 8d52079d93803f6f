-- release: 1
-- Opening, closing and time: how far a job came, what a worker is about, schedules and their nominal times, leaders.

ALTER TABLE {job} ADD COLUMN cursor TEXT;

ALTER TABLE {worker} ADD COLUMN phase TEXT NOT NULL DEFAULT 'open';
ALTER TABLE {worker} ADD COLUMN quiet_at INTEGER;

-- Jobs of dead workers that come back one by one.
CREATE INDEX {parked_return} ON {parked} (queue, due_at) WHERE state = 'retrying' AND reason = 'process crashed';

-- `definition` is the schedule as JSON; what is searched by stands beside it.
CREATE TABLE {schedule} (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    origin TEXT NOT NULL,
    version INTEGER NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    last_job_id TEXT,
    paused_at INTEGER,
    paused_until INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX {schedule_next} ON {schedule} (next_at) WHERE next_at IS NOT NULL;

-- One row for each nominal time that was dealt with: the key is what makes it one.
CREATE TABLE {fire} (
    schedule TEXT NOT NULL,
    nominal_at INTEGER NOT NULL,
    fate TEXT NOT NULL,
    cause TEXT NOT NULL,
    at INTEGER NOT NULL,
    job_id TEXT,
    PRIMARY KEY (schedule, nominal_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX {fire_nominal} ON {fire} (nominal_at);

CREATE TABLE {leader} (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
