-- release: 1
-- Actions that are taken at most once in a period: who has taken a key, and until when no other caller may.
CREATE TABLE {throttle} (
    key text COLLATE "C" PRIMARY KEY,
    caller text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
);
CREATE INDEX ON {throttle} (until);
