-- name: breakers_named
SELECT view FROM {breaker} WHERE name = ANY (%(names)s::text[]);

-- name: breakers
SELECT view FROM {breaker} ORDER BY name;

-- name: keep
INSERT INTO {breaker} (name, view) SELECT * FROM unnest(%(names)s::text[], %(views)s::text[])
ON CONFLICT (name) DO UPDATE SET view = excluded.view;

-- name: time
-- The time is read when all locks are held.
SELECT coalesce(%(now)s::timestamptz, clock_timestamp());
