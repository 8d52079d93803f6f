-- release: 1
-- The same as `statistic`, over all time: one row for each queue, kind and ending, never deleted. A roll-up adds to it what it
-- moves from `statistic_part`. Counters for monitoring are read from here, so that they survive restarts and never fall.
-- What the longest span holds already is the beginning.
CREATE TABLE {statistic_total} (
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    ending text COLLATE "C" NOT NULL,
    jobs bigint NOT NULL,
    waited double precision NOT NULL,
    ran double precision NOT NULL,
    wait_0 bigint NOT NULL, wait_1 bigint NOT NULL, wait_2 bigint NOT NULL, wait_3 bigint NOT NULL,
    wait_4 bigint NOT NULL, wait_5 bigint NOT NULL, wait_6 bigint NOT NULL, wait_7 bigint NOT NULL,
    wait_8 bigint NOT NULL, wait_9 bigint NOT NULL, wait_10 bigint NOT NULL, wait_11 bigint NOT NULL,
    wait_12 bigint NOT NULL, wait_13 bigint NOT NULL, wait_14 bigint NOT NULL, wait_15 bigint NOT NULL,
    wait_16 bigint NOT NULL, wait_17 bigint NOT NULL, wait_18 bigint NOT NULL, wait_19 bigint NOT NULL,
    wait_20 bigint NOT NULL, wait_21 bigint NOT NULL, wait_22 bigint NOT NULL, wait_23 bigint NOT NULL,
    wait_24 bigint NOT NULL, wait_25 bigint NOT NULL, run_0 bigint NOT NULL, run_1 bigint NOT NULL,
    run_2 bigint NOT NULL, run_3 bigint NOT NULL, run_4 bigint NOT NULL, run_5 bigint NOT NULL,
    run_6 bigint NOT NULL, run_7 bigint NOT NULL, run_8 bigint NOT NULL, run_9 bigint NOT NULL,
    run_10 bigint NOT NULL, run_11 bigint NOT NULL, run_12 bigint NOT NULL, run_13 bigint NOT NULL,
    run_14 bigint NOT NULL, run_15 bigint NOT NULL, run_16 bigint NOT NULL, run_17 bigint NOT NULL,
    run_18 bigint NOT NULL, run_19 bigint NOT NULL, run_20 bigint NOT NULL, run_21 bigint NOT NULL,
    run_22 bigint NOT NULL, run_23 bigint NOT NULL, run_24 bigint NOT NULL, run_25 bigint NOT NULL,
    PRIMARY KEY (queue, kind, ending)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

INSERT INTO {statistic_total} (
    queue, kind, ending, jobs, waited, ran,
    wait_0, wait_1, wait_2, wait_3, wait_4, wait_5, wait_6, wait_7, wait_8, wait_9, wait_10, wait_11, wait_12,
    wait_13, wait_14, wait_15, wait_16, wait_17, wait_18, wait_19, wait_20, wait_21, wait_22, wait_23, wait_24,
    wait_25, run_0, run_1, run_2, run_3, run_4, run_5, run_6, run_7, run_8, run_9, run_10, run_11, run_12, run_13,
    run_14, run_15, run_16, run_17, run_18, run_19, run_20, run_21, run_22, run_23, run_24, run_25
)
SELECT queue, kind, ending, sum(jobs), sum(waited), sum(ran),
    sum(wait_0), sum(wait_1), sum(wait_2), sum(wait_3), sum(wait_4), sum(wait_5), sum(wait_6), sum(wait_7),
    sum(wait_8), sum(wait_9), sum(wait_10), sum(wait_11), sum(wait_12), sum(wait_13), sum(wait_14), sum(wait_15),
    sum(wait_16), sum(wait_17), sum(wait_18), sum(wait_19), sum(wait_20), sum(wait_21), sum(wait_22), sum(wait_23),
    sum(wait_24), sum(wait_25), sum(run_0), sum(run_1), sum(run_2), sum(run_3), sum(run_4), sum(run_5), sum(run_6),
    sum(run_7), sum(run_8), sum(run_9), sum(run_10), sum(run_11), sum(run_12), sum(run_13), sum(run_14), sum(run_15),
    sum(run_16), sum(run_17), sum(run_18), sum(run_19), sum(run_20), sum(run_21), sum(run_22), sum(run_23),
    sum(run_24), sum(run_25)
FROM {statistic}
WHERE span = interval '6 hours' AND facet = 'both'
GROUP BY queue, kind, ending;
