-- release: 1
-- What was spent under a name in a stretch of `span` that begins at `at`: a budget is read from these, and what its
-- window holds does not have to be added up again for every batch. A spend says itself what of it is in the sums; where
-- that is not what it says otherwise it is new, or has changed, and is read beside them until it is summed.

ALTER TABLE {spend} ADD COLUMN summed_at INTEGER;
ALTER TABLE {spend} ADD COLUMN summed_amount REAL;
CREATE INDEX {spend_unsummed} ON {spend} (name, at) WHERE summed_at IS NOT at OR summed_amount IS NOT amount;
CREATE INDEX {spend_changed} ON {spend} (name, summed_at)
WHERE summed_at IS NOT NULL AND (summed_at IS NOT at OR summed_amount IS NOT amount);

CREATE TABLE {spend_sum} (
    name TEXT NOT NULL,
    span INTEGER NOT NULL,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (name, span, at)
) STRICT, WITHOUT ROWID;
