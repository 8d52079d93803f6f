-- release: 1
-- What was spent under a name in a stretch of `span` that begins at `at`: a budget is read from these, and what its
-- window holds does not have to be added up again for every batch. A spend says itself what of it is in the sums; where
-- that is not what it says otherwise it is new, or has changed, and is read beside them until it is summed.
ALTER TABLE {spend} ADD COLUMN summed_at timestamptz, ADD COLUMN summed_amount double precision;
-- By an expression, so that no plan takes the index of all spends for one of these.
CREATE INDEX ON {spend} ((name || ''), at) WHERE summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount;
CREATE INDEX ON {spend} ((name || ''), summed_at)
WHERE summed_at IS NOT NULL AND (summed_at IS DISTINCT FROM at OR summed_amount IS DISTINCT FROM amount);

CREATE TABLE {spend_sum} (
    name text COLLATE "C" NOT NULL,
    span interval NOT NULL,
    at timestamptz NOT NULL,
    amount double precision NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (name, span, at)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
