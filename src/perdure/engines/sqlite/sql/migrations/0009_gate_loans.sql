-- release: 1
-- What of a gate a worker may use without asking again: slots (`span` is 0), or starts that count for so long. It counts
-- as used, for everybody, until the worker gives it back or is dead.

CREATE TABLE {gate_loan} (
    key TEXT NOT NULL,
    span INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (key, span, worker_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX {gate_loan_worker} ON {gate_loan} (worker_id);
