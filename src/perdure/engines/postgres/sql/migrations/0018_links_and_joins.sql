-- release: 1
-- The links of chains, read one by one: among the arguments they would all be read each time the chain comes back.
CREATE TABLE {plan} (
    job_id uuid NOT NULL,
    number integer NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (job_id, number)
);

-- The link that is made when this one has succeeded.
ALTER TABLE {family} ADD COLUMN next_link integer;

-- A child that stands for a job which was there before and held the child's unique key. `child_id` is the id that the
-- child would have had, by which its row in the family is found; no job has it. Open until that row has the job's end.
CREATE TABLE {joined} (
    child_id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    parent_id uuid NOT NULL,
    is_open boolean NOT NULL
);
CREATE INDEX ON {joined} (job_id);
CREATE INDEX ON {joined} (child_id) WHERE is_open;
