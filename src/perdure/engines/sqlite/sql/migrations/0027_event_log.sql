-- release: 1
-- The log of events that other programs follow, and the webhooks that tell of them. Triggers on {finished} and {fire}
-- write the log; they exist only while it is switched on, so that it costs nothing otherwise. Ids are never used again:
-- they are the cursors of followers.

CREATE TABLE {event_log} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    kind TEXT,
    queue TEXT,
    tags TEXT,
    details TEXT NOT NULL
) STRICT;

CREATE TABLE {event_switch} (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    keep INTEGER,
    since INTEGER NOT NULL,
    pruned_to INTEGER NOT NULL
) STRICT;

CREATE TABLE {webhook} (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    secret TEXT,
    cursor TEXT NOT NULL,
    paused_at INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
