-- release: 1
-- A job that comes back takes its old place in line, which a parked job keeps; NULL: it takes one by the time at which it is
-- due.
ALTER TABLE {parked} ADD COLUMN turn INTEGER;
