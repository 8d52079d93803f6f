-- release: 1
-- A job that comes back without having failed has passed its gates already: by which start. And a place in line tells when
-- it was given, so that one given by a clock that was ahead is known.

ALTER TABLE {job} ADD COLUMN gates_passed TEXT;
ALTER TABLE {gate_place} ADD COLUMN given_at INTEGER;
