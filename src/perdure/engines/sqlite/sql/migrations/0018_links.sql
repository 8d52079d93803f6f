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
