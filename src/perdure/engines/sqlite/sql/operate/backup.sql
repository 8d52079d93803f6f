-- name: hold_still
-- A transaction sees the database as of its first look.
SELECT count(*) FROM sqlite_schema;

-- name: as_one_file
PRAGMA journal_mode = DELETE;

-- name: check
PRAGMA integrity_check(1);

-- name: count_jobs
SELECT count(*) FROM {job};
