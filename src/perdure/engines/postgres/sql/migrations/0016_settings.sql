-- release: 1
-- What was said of one job alone, the name that people outside know it by, and how many attempts the rule allowed that
-- judged a failure (0: any number).
ALTER TABLE {job} ADD COLUMN settings text, ADD COLUMN ref text COLLATE "C";
ALTER TABLE {attempt} ADD COLUMN attempt_limit integer;
CREATE UNIQUE INDEX ON {job} (ref) WHERE ref IS NOT NULL;
