-- release: 1
-- Which gates each attempt has met: that of a job's last run is in finished, that of an attempt that failed in attempt, and
-- what a job carries to its next run in job.

ALTER TABLE {job} ADD COLUMN gates TEXT;
ALTER TABLE {attempt} ADD COLUMN gates TEXT;
ALTER TABLE {finished} ADD COLUMN gates TEXT;
