-- release: 1
-- The starts of a rate, one row for all of a key that began at one instant. `total` counts all starts of the key up to
-- and with these: how many lie in a stretch is seen from its first and its last row. What no longer counts is found
-- along the key, because an index by time cost each start as much as the start itself.
CREATE TABLE {gate_begun} (
    key text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    number integer NOT NULL,
    total bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (key, at)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
INSERT INTO {gate_begun} (key, at, number, total, until)
SELECT key, at, count(*), sum(count(*)) OVER (PARTITION BY key ORDER BY at), max(until)
FROM {gate_start} GROUP BY key, at;
DROP TABLE {gate_start};
