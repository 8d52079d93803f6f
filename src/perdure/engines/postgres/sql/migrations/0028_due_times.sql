-- release: 1
-- When a job that came back was due: how long it waited is counted from there. NULL: it was never parked, so that `since`
-- says it, or it is not known.
ALTER TABLE {ready} ADD COLUMN due_at timestamptz;
