-- release: 1
-- What an app declares of its kinds for tools that have none of its code: its words for states, and how long finished
-- jobs are kept. `kept_as` is the kind of a finished job that goes by such a time.

CREATE TABLE {kind} (
    name TEXT PRIMARY KEY,
    words TEXT,
    keep TEXT,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE {finished} ADD COLUMN kept_as TEXT;

CREATE INDEX {finished_kept} ON {finished} (kept_as, state, finished_at) WHERE kept_as IS NOT NULL;
