-- release: 1
-- Actions that are taken at most once in a period: who has taken a key, and until when no other caller may.

CREATE TABLE {throttle} (
    key TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX {throttle_until} ON {throttle} (until);
