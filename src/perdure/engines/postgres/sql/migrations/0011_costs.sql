-- release: 1
-- What one job has spent is asked for as well.
CREATE INDEX ON {spend} (job_id, name);
