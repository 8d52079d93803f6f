-- release: 1
-- The record of a job is written once and read by key. Where the job stands is told by exactly one row in one of four
-- narrow tables, its place: ready, lease, parked or finished. Moving a job is deleting one row and inserting another.

CREATE TABLE {job} (
    id uuid PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
    args text NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz,
    max_attempts integer,
    crash_limit integer NOT NULL,
    unique_key text COLLATE "C",
    unique_states text COLLATE "C",
    unique_dead_for interval,
    tags text[],
    meta text,
    unknown_since timestamptz  -- no handler was found; the one mark that is made later
);

-- One number for all queues: whatever enters `ready` later sorts later, save for transactions that commit late.
CREATE SEQUENCE {ready_seq} CACHE 1;

-- A reason that is NULL is "enqueued", by far the most common one.
CREATE TABLE {ready} (
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('{ready_seq}'),
    job_id uuid NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    since timestamptz NOT NULL,
    reason text,
    PRIMARY KEY (queue, priority, seq)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE UNIQUE INDEX ON {ready} (job_id);

-- One token for each batch of claims: with the job's id it is unique, and for each job it rises.
CREATE SEQUENCE {claim_token} CACHE 1;

CREATE TABLE {lease} (
    job_id uuid PRIMARY KEY,
    token bigint NOT NULL,
    worker_id bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    failures integer NOT NULL,
    crashes integer NOT NULL,
    since timestamptz NOT NULL,
    claimed_at timestamptz NOT NULL,
    cancel_at timestamptz,
    cancel_why text
) WITH (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE INDEX ON {lease} (worker_id, job_id);
CREATE INDEX ON {lease} (worker_id) WHERE cancel_at IS NOT NULL;

CREATE TABLE {parked} (
    job_id uuid PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    state text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    note text,
    due_at timestamptz,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    since timestamptz NOT NULL,
    parked_at timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE INDEX ON {parked} (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ON {parked} (state, queue);

CREATE TABLE {finished} (
    job_id uuid PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    note text,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    worker text,
    failures integer NOT NULL,
    crashes integer NOT NULL,
    since timestamptz NOT NULL,
    result text,
    warnings text
);
CREATE INDEX ON {finished} (state, queue, finished_at);
CREATE INDEX ON {finished} (state, job_id) WHERE state <> 'succeeded';

CREATE TABLE {attempt} (
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    number integer NOT NULL,
    reason text NOT NULL,
    worker text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    error_type text NOT NULL,
    message text NOT NULL,
    traceback text,
    next_at timestamptz,
    PRIMARY KEY (job_id, token)
);

-- The key is a digest, so that a key may be longer than an index takes. A hold that expires is one of a dead job.
CREATE TABLE {unique_hold} (
    key bytea PRIMARY KEY,
    job_id uuid NOT NULL,
    expires_at timestamptz
);
CREATE INDEX ON {unique_hold} (expires_at) WHERE expires_at IS NOT NULL;

-- `epoch` is raised when the answer to a claim was lost: a claim of an older epoch that is still on its way gets nothing.
CREATE TABLE {worker} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    process_started bigint NOT NULL,
    queues text[] NOT NULL,
    concurrency integer NOT NULL,
    version text NOT NULL,
    epoch integer NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL,
    beat_at timestamptz NOT NULL,
    dead_at timestamptz
) WITH (fillfactor = 50);

CREATE TABLE {audit} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    job_id uuid,
    details jsonb NOT NULL DEFAULT jsonb_build_object()
);
CREATE INDEX ON {audit} (job_id);
