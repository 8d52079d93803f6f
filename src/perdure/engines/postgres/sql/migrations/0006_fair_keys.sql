-- release: 1
-- A job keeps its fair key for life, so that it takes turns whichever way it becomes ready. One that a worker of the
-- release before has stored bears its key only until it is first taken.

ALTER TABLE {job} ADD COLUMN fair_key text COLLATE "C";
