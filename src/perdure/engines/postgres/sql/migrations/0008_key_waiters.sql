-- release: 1
-- Jobs that wait for a unique key, oldest first, so that one is found when the key is free.

CREATE INDEX ON {parked} (since, job_id) WHERE reason = 'unique key held by another job';
