-- release: 1
-- What became of attempts, by minute, queue, kind and ending: how many, the sums of wait and run times in seconds, and
-- their histograms (wait_0 to wait_25, run_0 to run_25: the buckets of `domain.statistics`).
--
-- Workers add to `statistic_part`. A roll-up moves what is complete from there to `statistic`, and adds it for each `span`
-- (a minute, a quarter of an hour, an hour, six hours) and each `facet`: all jobs, each queue, each kind, and both together. What a
-- facet does not tell apart is an empty text. `statistic_writer` holds the last flush of each writer: one that was
-- written already, and whose answer was lost, is not counted twice.

CREATE TABLE {statistic_part} (
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    ending TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    waited REAL NOT NULL,
    ran REAL NOT NULL,
    wait_0 INTEGER NOT NULL, wait_1 INTEGER NOT NULL, wait_2 INTEGER NOT NULL, wait_3 INTEGER NOT NULL,
    wait_4 INTEGER NOT NULL, wait_5 INTEGER NOT NULL, wait_6 INTEGER NOT NULL, wait_7 INTEGER NOT NULL,
    wait_8 INTEGER NOT NULL, wait_9 INTEGER NOT NULL, wait_10 INTEGER NOT NULL, wait_11 INTEGER NOT NULL,
    wait_12 INTEGER NOT NULL, wait_13 INTEGER NOT NULL, wait_14 INTEGER NOT NULL, wait_15 INTEGER NOT NULL,
    wait_16 INTEGER NOT NULL, wait_17 INTEGER NOT NULL, wait_18 INTEGER NOT NULL, wait_19 INTEGER NOT NULL,
    wait_20 INTEGER NOT NULL, wait_21 INTEGER NOT NULL, wait_22 INTEGER NOT NULL, wait_23 INTEGER NOT NULL,
    wait_24 INTEGER NOT NULL, wait_25 INTEGER NOT NULL, run_0 INTEGER NOT NULL, run_1 INTEGER NOT NULL,
    run_2 INTEGER NOT NULL, run_3 INTEGER NOT NULL, run_4 INTEGER NOT NULL, run_5 INTEGER NOT NULL,
    run_6 INTEGER NOT NULL, run_7 INTEGER NOT NULL, run_8 INTEGER NOT NULL, run_9 INTEGER NOT NULL,
    run_10 INTEGER NOT NULL, run_11 INTEGER NOT NULL, run_12 INTEGER NOT NULL, run_13 INTEGER NOT NULL,
    run_14 INTEGER NOT NULL, run_15 INTEGER NOT NULL, run_16 INTEGER NOT NULL, run_17 INTEGER NOT NULL,
    run_18 INTEGER NOT NULL, run_19 INTEGER NOT NULL, run_20 INTEGER NOT NULL, run_21 INTEGER NOT NULL,
    run_22 INTEGER NOT NULL, run_23 INTEGER NOT NULL, run_24 INTEGER NOT NULL, run_25 INTEGER NOT NULL,
    PRIMARY KEY (at, queue, kind, ending)
) STRICT, WITHOUT ROWID;

CREATE TABLE {statistic} (
    span INTEGER NOT NULL,
    facet TEXT NOT NULL,
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    ending TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    waited REAL NOT NULL,
    ran REAL NOT NULL,
    wait_0 INTEGER NOT NULL, wait_1 INTEGER NOT NULL, wait_2 INTEGER NOT NULL, wait_3 INTEGER NOT NULL,
    wait_4 INTEGER NOT NULL, wait_5 INTEGER NOT NULL, wait_6 INTEGER NOT NULL, wait_7 INTEGER NOT NULL,
    wait_8 INTEGER NOT NULL, wait_9 INTEGER NOT NULL, wait_10 INTEGER NOT NULL, wait_11 INTEGER NOT NULL,
    wait_12 INTEGER NOT NULL, wait_13 INTEGER NOT NULL, wait_14 INTEGER NOT NULL, wait_15 INTEGER NOT NULL,
    wait_16 INTEGER NOT NULL, wait_17 INTEGER NOT NULL, wait_18 INTEGER NOT NULL, wait_19 INTEGER NOT NULL,
    wait_20 INTEGER NOT NULL, wait_21 INTEGER NOT NULL, wait_22 INTEGER NOT NULL, wait_23 INTEGER NOT NULL,
    wait_24 INTEGER NOT NULL, wait_25 INTEGER NOT NULL, run_0 INTEGER NOT NULL, run_1 INTEGER NOT NULL,
    run_2 INTEGER NOT NULL, run_3 INTEGER NOT NULL, run_4 INTEGER NOT NULL, run_5 INTEGER NOT NULL,
    run_6 INTEGER NOT NULL, run_7 INTEGER NOT NULL, run_8 INTEGER NOT NULL, run_9 INTEGER NOT NULL,
    run_10 INTEGER NOT NULL, run_11 INTEGER NOT NULL, run_12 INTEGER NOT NULL, run_13 INTEGER NOT NULL,
    run_14 INTEGER NOT NULL, run_15 INTEGER NOT NULL, run_16 INTEGER NOT NULL, run_17 INTEGER NOT NULL,
    run_18 INTEGER NOT NULL, run_19 INTEGER NOT NULL, run_20 INTEGER NOT NULL, run_21 INTEGER NOT NULL,
    run_22 INTEGER NOT NULL, run_23 INTEGER NOT NULL, run_24 INTEGER NOT NULL, run_25 INTEGER NOT NULL,
    PRIMARY KEY (span, facet, at, queue, kind, ending)
) STRICT, WITHOUT ROWID;

CREATE TABLE {statistic_writer} (
    writer TEXT PRIMARY KEY,
    flush INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
