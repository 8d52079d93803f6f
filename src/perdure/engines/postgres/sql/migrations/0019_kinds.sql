-- release: 1
-- What an app declares of its kinds for tools that have none of its code: its words for states, and how long finished
-- jobs are kept. `kept_as` is the kind of a finished job that goes by such a time.
CREATE TABLE {kind} (
    name text COLLATE "C" PRIMARY KEY,
    words jsonb,
    keep text,
    changed_at timestamptz NOT NULL
);
ALTER TABLE {finished} ADD COLUMN kept_as text COLLATE "C";
CREATE INDEX ON {finished} (kept_as, state, finished_at) WHERE kept_as IS NOT NULL;
