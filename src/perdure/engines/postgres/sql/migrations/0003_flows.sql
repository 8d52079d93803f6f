-- release: 1
-- Flows: what a job has done, whom it has spawned, what it waits for, how far it is.

ALTER TABLE {job} ADD COLUMN parent_id uuid;
ALTER TABLE {job} ADD COLUMN is_parent boolean NOT NULL DEFAULT false;
-- What a waiting job waits for besides the time: event:NAME or family:KEY. Whoever waits for an event is found by it.
ALTER TABLE {parked} ADD COLUMN awaits text COLLATE "C";
CREATE INDEX ON {parked} (awaits) WHERE awaits IS NOT NULL;

-- `turn` keeps the order in which steps were begun.
CREATE TABLE {step} (
    job_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    turn bigint GENERATED ALWAYS AS IDENTITY,
    kind text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    result text,
    note text,
    tries integer NOT NULL,
    due_at timestamptz,
    begun_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, key)
);

CREATE TABLE {family} (
    parent_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    turn bigint GENERATED ALWAYS AS IDENTITY,
    total integer NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    quorum integer,
    on_end text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (parent_id, key)
) WITH (fillfactor = 50);

-- A child's end is counted once, and what it brought is kept here, whatever becomes of the job's own record.
CREATE TABLE {child} (
    parent_id uuid NOT NULL,
    family text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    job_id uuid NOT NULL,
    kind text COLLATE "C" NOT NULL,
    fate text COLLATE "C",
    result text,
    error text,
    PRIMARY KEY (parent_id, family, number)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX ON {child} (job_id);

CREATE TABLE {event} (
    name text COLLATE "C" PRIMARY KEY,
    payload text,
    actor text NOT NULL,
    at timestamptz NOT NULL
);

-- Claims that were taken away from a worker that still runs them: it is told, and then they are forgotten.
CREATE TABLE {revoked} (
    worker_id bigint NOT NULL,
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    why text,
    at timestamptz NOT NULL,
    PRIMARY KEY (worker_id, job_id, token)
);

CREATE TABLE {progress} (
    job_id uuid PRIMARY KEY,
    current double precision NOT NULL,
    total double precision,
    note text,
    at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE {line} (
    job_id uuid NOT NULL,
    number integer NOT NULL,
    at timestamptz NOT NULL,
    level text COLLATE "C" NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (job_id, number)
);
