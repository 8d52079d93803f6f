-- release: 1
-- Fair shares: a ready job may bear a key, and jobs of different keys take turns.

ALTER TABLE {ready} ADD COLUMN fair_key TEXT;
CREATE INDEX {ready_fair} ON {ready} (queue, priority, fair_key, turn) WHERE fair_key IS NOT NULL;
