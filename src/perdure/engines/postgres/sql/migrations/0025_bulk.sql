-- release: 1
-- Bulk commands: one action on all jobs that match a filter, done in batches, each in one transaction with the cursor and
-- the counts. Who holds the lease with the newest token works on it.
CREATE TABLE {bulk} (
    id text COLLATE "C" PRIMARY KEY,
    action text NOT NULL,
    filter text NOT NULL,
    params text NOT NULL,
    actor text NOT NULL,
    why text,
    source text,
    state text NOT NULL,
    jobs bigint NOT NULL,
    capped boolean NOT NULL,
    seen bigint NOT NULL,
    done bigint NOT NULL,
    skipped bigint NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    finished_at timestamptz,
    error text,
    outcome text NOT NULL,
    cursor uuid,
    token bigint NOT NULL,
    runner text,
    leased_until timestamptz NOT NULL
);
CREATE INDEX ON {bulk} (created_at);
CREATE INDEX ON {bulk} (created_at) WHERE state = 'running';
