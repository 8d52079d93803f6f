-- release: 1
-- A job may wait for several things at once: the first is in `awaits`, the others are here.
ALTER TABLE {parked} ADD COLUMN also_awaits text[];

-- Leads from an event to the jobs that wait for it besides something else. Whether a job still does is said by its own
-- row among the parked.
CREATE TABLE {waiter} (
    event text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (event, job_id)
);
CREATE INDEX ON {waiter} (job_id);

-- What a child warned of that is done with warnings: a list in JSON.
ALTER TABLE {child} ADD COLUMN warnings text;
