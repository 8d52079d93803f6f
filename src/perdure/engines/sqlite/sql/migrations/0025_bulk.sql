-- release: 1
-- Bulk commands: one action on all jobs that match a filter, done in batches, each in one transaction with the cursor and
-- the counts. Who holds the lease with the newest token works on it.

CREATE TABLE {bulk} (
    id TEXT PRIMARY KEY,
    action TEXT NOT NULL,
    filter TEXT NOT NULL,
    params TEXT NOT NULL,
    actor TEXT NOT NULL,
    why TEXT,
    source TEXT,
    state TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    capped INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    done INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    finished_at INTEGER,
    error TEXT,
    outcome TEXT NOT NULL,
    cursor TEXT,
    token INTEGER NOT NULL,
    runner TEXT,
    leased_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {bulk_created} ON {bulk} (created_at);
CREATE INDEX {bulk_running} ON {bulk} (created_at) WHERE state = 'running';
