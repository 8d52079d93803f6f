-- release: 1
-- The links of chains, read one by one: among the arguments they would all be read each time the chain comes back.
CREATE TABLE {plan} (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

-- The link that is made when this one has succeeded.
ALTER TABLE {family} ADD COLUMN next_link INTEGER;

-- A child that stands for a job which was there before and held the child's unique key. `child_id` is the id that the
-- child would have had, by which its row in the family is found; no job has it. Open until that row has the job's end.
CREATE TABLE {joined} (
    child_id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    is_open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {joined_job} ON {joined} (job_id);
CREATE INDEX {joined_open} ON {joined} (child_id) WHERE is_open = 1;
