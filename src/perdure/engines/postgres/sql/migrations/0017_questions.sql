-- release: 1
-- What people and applications ask of the store besides the jobs themselves.

-- Who cancelled a job, or asked a running one to stop.
ALTER TABLE {lease} ADD COLUMN cancel_by text;
ALTER TABLE {finished} ADD COLUMN cancelled_by text;

-- A word that the application keeps with a job, such as "read". Jobs without one are not in the index.
ALTER TABLE {job} ADD COLUMN mark text COLLATE "C";
CREATE INDEX ON {job} (mark, id) WHERE mark IS NOT NULL;

-- The audit trail, newest first: all of it, of one action, and of one actor. Most entries are the system's own, where
-- those are switched on; they need no index by actor.
CREATE INDEX ON {audit} (at, id);
CREATE INDEX ON {audit} (action, at, id);
CREATE INDEX ON {audit} (actor, at, id) WHERE actor <> 'system';
