-- release: 1
-- What one job has spent is asked for as well.

CREATE INDEX {spend_job} ON {spend} (job_id, name);
