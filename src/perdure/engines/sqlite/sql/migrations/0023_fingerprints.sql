-- release: 1
-- Failures that differ only in numbers, ids and the like have one fingerprint. A group is all failures of one; what it has
-- failed and killed is counted by hours.
CREATE TABLE {failure_group} (
    fingerprint TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    error_type TEXT NOT NULL,
    message TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE {failure_count} (
    fingerprint TEXT NOT NULL,
    hour INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX {failure_count_hour} ON {failure_count} (hour);

ALTER TABLE {attempt} ADD COLUMN fingerprint TEXT;

CREATE INDEX {attempt_fingerprint} ON {attempt} (fingerprint, job_id) WHERE fingerprint IS NOT NULL;

ALTER TABLE {finished} ADD COLUMN fingerprint TEXT;

CREATE INDEX {finished_fingerprint} ON {finished} (fingerprint, job_id) WHERE state = 'dead' AND fingerprint IS NOT NULL;

CREATE INDEX {finished_unprinted} ON {finished} (job_id) WHERE state = 'dead' AND fingerprint IS NULL;
