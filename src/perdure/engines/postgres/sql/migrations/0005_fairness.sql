-- release: 1
-- Fair shares: a ready job may bear a key, and jobs of different keys take turns. Their numbers lie between those that
-- the sequence gives, which therefore leaves room: it gives multiples of 1048576, and the jobs with a key get others.

ALTER TABLE {ready} ADD COLUMN fair_key text COLLATE "C";
CREATE INDEX ON {ready} (queue, priority, fair_key, seq) WHERE fair_key IS NOT NULL;

CREATE SEQUENCE {fair_seq} MINVALUE 1 MAXVALUE 1048575 CYCLE CACHE 1;
ALTER SEQUENCE {ready_seq} INCREMENT BY 1048576;
SELECT setval('{ready_seq}', (last_value / 1048576 + 1) * 1048576) FROM {ready_seq};
