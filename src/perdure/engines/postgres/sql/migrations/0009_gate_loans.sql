-- release: 1
-- What of a gate a worker may use without asking again: slots (`span` is 0), or starts that count for so long. It counts
-- as used, for everybody, until the worker gives it back or is dead.
CREATE TABLE {gate_loan} (
    worker_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    span interval NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (worker_id, key, span)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
CREATE INDEX ON {gate_loan} (key, span);
