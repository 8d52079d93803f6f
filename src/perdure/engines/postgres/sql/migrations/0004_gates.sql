-- release: 1
-- Gates: who has started, holds, waits and spends under which key; breakers; pauses.

-- Jobs that an operator may set free all at once.
CREATE INDEX ON {parked} (reason, job_id) WHERE reason IN ('circuit breaker open', 'on hold');

-- What is locked before anything is counted. The starts of a rate are kept for `span`, the longest stretch that anybody
-- counts them over. Forgotten when it was not used for long.
CREATE TABLE {gate} (
    name text COLLATE "C" PRIMARY KEY,
    span interval NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX ON {gate} (until);

CREATE TABLE {gate_start} (
    key text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (key, at, job_id, token)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE INDEX ON {gate_start} (until);

-- Where a job stands in the line before a rate.
CREATE TABLE {gate_place} (
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    at timestamptz NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (key, job_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE INDEX ON {gate_place} (key, at);
CREATE INDEX ON {gate_place} (until);

-- A hold counts while the lease of its job and token exists: whatever ends that ends the hold.
CREATE TABLE {gate_hold} (
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    PRIMARY KEY (key, job_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- `size` is the limit that the job itself was told of. It keeps its turn until it has its slot.
CREATE TABLE {gate_wait} (
    turn bigint GENERATED ALWAYS AS IDENTITY,
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    size integer NOT NULL,
    PRIMARY KEY (key, job_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
CREATE INDEX ON {gate_wait} (key, turn);

CREATE TABLE {spend} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    amount double precision NOT NULL,
    job_id uuid NOT NULL,
    is_estimate boolean NOT NULL
);
CREATE INDEX ON {spend} (name, at);
CREATE UNIQUE INDEX ON {spend} (name, job_id) WHERE is_estimate;

-- `view` is the breaker as JSON.
CREATE TABLE {breaker} (
    name text COLLATE "C" PRIMARY KEY,
    view text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE {pause} (
    id text COLLATE "C" PRIMARY KEY,
    queue text COLLATE "C",
    kind text COLLATE "C",
    args text,
    until timestamptz,
    why text,
    actor text NOT NULL,
    at timestamptz NOT NULL
);
