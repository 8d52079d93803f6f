-- release: 1
-- A job may wait for several things at once: the first is in `awaits`, the others are here, a list in JSON. Whoever waits
-- for an event has a row in `waiter` for each.

ALTER TABLE {parked} ADD COLUMN also_awaits TEXT;

-- What a child warned of that is done with warnings: a list in JSON.
ALTER TABLE {child} ADD COLUMN warnings TEXT;
