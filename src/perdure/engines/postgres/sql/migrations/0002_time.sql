-- release: 1
-- Opening, closing and time: how far a job came, what a worker is about, schedules and their nominal times, leaders.

ALTER TABLE {job} ADD COLUMN cursor text;

-- `lease` is small and is scanned a few times a minute, while every claim pays for each of its indexes. The older
-- release only gets slower without this one.
DROP INDEX IF EXISTS {lease_worker_id_job_id_idx};

ALTER TABLE {worker} ADD COLUMN phase text COLLATE "C" NOT NULL DEFAULT 'open';
ALTER TABLE {worker} ADD COLUMN quiet_at timestamptz;

-- `definition` is the schedule as JSON; what is searched by stands beside it.
CREATE TABLE {schedule} (
    name text COLLATE "C" PRIMARY KEY,
    definition text NOT NULL,
    origin text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    next_at timestamptz,
    last_at timestamptz,
    last_job_id uuid,
    paused_at timestamptz,
    paused_until timestamptz,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    declared_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX ON {schedule} (next_at) WHERE next_at IS NOT NULL;

-- One row for each nominal time that was dealt with: the key is what makes it one.
CREATE TABLE {fire} (
    schedule text COLLATE "C" NOT NULL,
    nominal_at timestamptz NOT NULL,
    fate text COLLATE "C" NOT NULL,
    cause text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    job_id uuid,
    PRIMARY KEY (schedule, nominal_at)
);
CREATE INDEX ON {fire} (nominal_at);

CREATE TABLE {leader} (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    term bigint NOT NULL,
    lease interval NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 50);
