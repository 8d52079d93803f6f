-- release: 1
-- What became of attempts, by minute, queue, kind and ending: how many, the sums of wait and run times in seconds, and
-- their histograms (wait_0 to wait_25, run_0 to run_25: the buckets of `domain.statistics`).
--
-- Workers add to `statistic_part`. A roll-up moves what is complete from there to `statistic`, and adds it for each `span`
-- (a minute, a quarter of an hour, an hour, six hours) and each `facet`: all jobs, each queue, each kind, and both together. What a
-- facet does not tell apart is an empty text. `statistic_writer` holds the last flush of each writer: one that was
-- written already, and whose answer was lost, is not counted twice.
CREATE TABLE {statistic_part} (
    at timestamptz NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    ending text COLLATE "C" NOT NULL,
    jobs integer NOT NULL,
    waited double precision NOT NULL,
    ran double precision NOT NULL,
    wait_0 integer NOT NULL, wait_1 integer NOT NULL, wait_2 integer NOT NULL, wait_3 integer NOT NULL,
    wait_4 integer NOT NULL, wait_5 integer NOT NULL, wait_6 integer NOT NULL, wait_7 integer NOT NULL,
    wait_8 integer NOT NULL, wait_9 integer NOT NULL, wait_10 integer NOT NULL, wait_11 integer NOT NULL,
    wait_12 integer NOT NULL, wait_13 integer NOT NULL, wait_14 integer NOT NULL, wait_15 integer NOT NULL,
    wait_16 integer NOT NULL, wait_17 integer NOT NULL, wait_18 integer NOT NULL, wait_19 integer NOT NULL,
    wait_20 integer NOT NULL, wait_21 integer NOT NULL, wait_22 integer NOT NULL, wait_23 integer NOT NULL,
    wait_24 integer NOT NULL, wait_25 integer NOT NULL, run_0 integer NOT NULL, run_1 integer NOT NULL,
    run_2 integer NOT NULL, run_3 integer NOT NULL, run_4 integer NOT NULL, run_5 integer NOT NULL,
    run_6 integer NOT NULL, run_7 integer NOT NULL, run_8 integer NOT NULL, run_9 integer NOT NULL,
    run_10 integer NOT NULL, run_11 integer NOT NULL, run_12 integer NOT NULL, run_13 integer NOT NULL,
    run_14 integer NOT NULL, run_15 integer NOT NULL, run_16 integer NOT NULL, run_17 integer NOT NULL,
    run_18 integer NOT NULL, run_19 integer NOT NULL, run_20 integer NOT NULL, run_21 integer NOT NULL,
    run_22 integer NOT NULL, run_23 integer NOT NULL, run_24 integer NOT NULL, run_25 integer NOT NULL,
    PRIMARY KEY (at, queue, kind, ending)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

CREATE TABLE {statistic} (
    span interval NOT NULL,
    facet text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    ending text COLLATE "C" NOT NULL,
    jobs integer NOT NULL,
    waited double precision NOT NULL,
    ran double precision NOT NULL,
    wait_0 integer NOT NULL, wait_1 integer NOT NULL, wait_2 integer NOT NULL, wait_3 integer NOT NULL,
    wait_4 integer NOT NULL, wait_5 integer NOT NULL, wait_6 integer NOT NULL, wait_7 integer NOT NULL,
    wait_8 integer NOT NULL, wait_9 integer NOT NULL, wait_10 integer NOT NULL, wait_11 integer NOT NULL,
    wait_12 integer NOT NULL, wait_13 integer NOT NULL, wait_14 integer NOT NULL, wait_15 integer NOT NULL,
    wait_16 integer NOT NULL, wait_17 integer NOT NULL, wait_18 integer NOT NULL, wait_19 integer NOT NULL,
    wait_20 integer NOT NULL, wait_21 integer NOT NULL, wait_22 integer NOT NULL, wait_23 integer NOT NULL,
    wait_24 integer NOT NULL, wait_25 integer NOT NULL, run_0 integer NOT NULL, run_1 integer NOT NULL,
    run_2 integer NOT NULL, run_3 integer NOT NULL, run_4 integer NOT NULL, run_5 integer NOT NULL,
    run_6 integer NOT NULL, run_7 integer NOT NULL, run_8 integer NOT NULL, run_9 integer NOT NULL,
    run_10 integer NOT NULL, run_11 integer NOT NULL, run_12 integer NOT NULL, run_13 integer NOT NULL,
    run_14 integer NOT NULL, run_15 integer NOT NULL, run_16 integer NOT NULL, run_17 integer NOT NULL,
    run_18 integer NOT NULL, run_19 integer NOT NULL, run_20 integer NOT NULL, run_21 integer NOT NULL,
    run_22 integer NOT NULL, run_23 integer NOT NULL, run_24 integer NOT NULL, run_25 integer NOT NULL,
    PRIMARY KEY (span, facet, at, queue, kind, ending)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

CREATE TABLE {statistic_writer} (
    writer text COLLATE "C" PRIMARY KEY,
    flush bigint NOT NULL,
    at timestamptz NOT NULL
);
