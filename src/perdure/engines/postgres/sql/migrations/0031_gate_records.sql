-- release: 1
-- Which gates each attempt has met: that of a job's last run is in finished, that of an attempt that failed in attempt, and
-- what a job carries to its next run in job.

ALTER TABLE {job} ADD COLUMN gates text;
ALTER TABLE {attempt} ADD COLUMN gates text;
ALTER TABLE {finished} ADD COLUMN gates text;
