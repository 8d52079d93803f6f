-- release: 1
-- A job that comes back takes its old place in line. `lease` and `parked` keep the number that it had in `ready`; NULL: it
-- takes a new place, by the time at which it is due. `behind` is the newest number at the moment the job was parked: such a
-- job goes behind it.
ALTER TABLE {lease} ADD COLUMN seq bigint;
ALTER TABLE {parked} ADD COLUMN seq bigint, ADD COLUMN behind bigint;

-- Jobs that came back: their numbers may be lower than what claims have passed, so claims find them by this index. By an
-- expression, so that no plan takes the primary key instead.
CREATE INDEX ON {ready} ((queue || ''), priority, seq) WHERE reason IS NOT NULL AND reason <> 'requeued';

-- What the newest number was at which time, about twice a second while workers live.
CREATE TABLE {seq_mark} (
    at timestamptz PRIMARY KEY,
    seq bigint NOT NULL
);
