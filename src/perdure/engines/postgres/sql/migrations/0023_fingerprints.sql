-- release: 1
-- Failures that differ only in numbers, ids and the like have one fingerprint. A group is all failures of one; what it has
-- failed and killed is counted by hours. Each session counts in one of 16 rows of the hour, so that workers that fail
-- together do not wait for each other.
CREATE TABLE {failure_group} (
    fingerprint text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    error_type text NOT NULL,
    message text NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL
);
CREATE TABLE {failure_count} (
    fingerprint text COLLATE "C" NOT NULL,
    hour timestamptz NOT NULL,
    shard smallint NOT NULL,
    deaths bigint NOT NULL,
    failures bigint NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (fingerprint, hour, shard)
) WITH (fillfactor = 50);
CREATE INDEX ON {failure_count} (hour);
ALTER TABLE {attempt} ADD COLUMN fingerprint text COLLATE "C";
CREATE INDEX ON {attempt} (fingerprint, job_id) WHERE fingerprint IS NOT NULL;
ALTER TABLE {finished} ADD COLUMN fingerprint text COLLATE "C";
CREATE INDEX ON {finished} (fingerprint, job_id) WHERE state = 'dead' AND fingerprint IS NOT NULL;
CREATE INDEX ON {finished} (job_id) WHERE state = 'dead' AND fingerprint IS NULL;

-- A stored document as jsonb, for searches; NULL if PostgreSQL cannot hold it: a text with \u0000, a number of a million
-- digits.
CREATE FUNCTION {json_of} (document text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
BEGIN
    RETURN document::pg_catalog.jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded OR syntax_error_or_access_rule_violation THEN
    RETURN NULL;
END $$;
