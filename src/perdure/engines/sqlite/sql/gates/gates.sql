-- name: lost
-- The claims of a batch that are lost.
SELECT CAST(json_group_array(row.key) AS BLOB)
FROM json_each(:claims) AS row
WHERE
    NOT EXISTS (
        SELECT 1 FROM {lease} AS lease WHERE lease.job_id = row.value ->> 0 AND lease.token = row.value ->> 1
    );

-- name: gates
SELECT CAST(json_group_array(json_array(gate.name, gate.span, gate.until, json(gate.starts))) AS BLOB)
FROM json_each(:names) AS row
CROSS JOIN {gate} AS gate ON gate.name = row.value;

-- name: rates_with_line
-- One seek shows whether any job waits for a rate.
SELECT CAST(json_group_array(row.value) AS BLOB)
FROM json_each(:names) AS row
WHERE
    EXISTS (SELECT 1 FROM {gate_place})
    AND EXISTS (SELECT 1 FROM {gate_place} AS place WHERE place.key = row.value);

-- name: holds
-- All holds of these keys; those whose lease is gone have been dropped.
SELECT CAST(json_group_array(json_array(hold.key, hold.job_id, hold.token)) AS BLOB)
FROM json_each(:slots) AS row
CROSS JOIN {gate_hold} AS hold ON hold.key = row.value;

-- name: slots_with_line
SELECT CAST(json_group_array(row.value) AS BLOB)
FROM json_each(:slots) AS row
WHERE
    EXISTS (SELECT 1 FROM {gate_wait})
    AND EXISTS (SELECT 1 FROM {gate_wait} AS wait WHERE wait.key = row.value);

-- name: lent
-- Lent slots of some keys, lent starts of others; quick if nothing is lent.
SELECT CAST(json_group_array(json_array(key, span, number)) AS BLOB)
FROM (
    SELECT row.key, loan.span, sum(loan.number) AS number
    FROM (
        SELECT value AS key, 0 AS is_rate FROM json_each(:slots)
        UNION ALL
        SELECT value, 1 FROM json_each(:names)
    ) AS row
    CROSS JOIN {gate_loan} AS loan ON loan.key = row.key AND (loan.span > 0) = row.is_rate
    LEFT JOIN {worker} AS worker ON worker.id = loan.worker_id
    WHERE
        EXISTS (SELECT 1 FROM {gate_loan})
        AND (
            worker.dead_at IS NULL OR NOT row.is_rate
            OR worker.dead_at + loan.span > :now AND worker.dead_at <= :now + {CLOCK_SLACK}
        )
    GROUP BY row.key, loan.span
);

-- name: lives
SELECT CAST(json_array(EXISTS (SELECT 1 FROM {worker} WHERE id = :borrower AND dead_at IS NULL)) AS BLOB);

-- name: keep_gates
INSERT INTO {gate} (name, span, until)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2 FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (name) DO UPDATE SET span = excluded.span, until = excluded.until;

-- name: begin
UPDATE {gate} SET starts = row.value ->> 1 FROM json_each(:rows) AS row WHERE name = row.value ->> 0;

-- name: near_places
SELECT CAST(json_group_array(json_array(place.key, place.at, place.job_id)) AS BLOB)
FROM json_each(:rows) AS row
CROSS JOIN
    {gate_place} AS place
    ON place.key = row.value ->> 0 AND place.at > row.value ->> 1 AND place.at < row.value ->> 2;

-- name: last_places
-- The end of each line; a shorter line is read as a whole.
SELECT CAST(json_group_array(json_array(place.key, place.at, place.job_id, place.given_at)) AS BLOB)
FROM json_each(:keys) AS row
CROSS JOIN
    {gate_place} AS place
    ON place.key = row.value
    AND place.at >= COALESCE(
        (SELECT end.at FROM {gate_place} AS end WHERE end.key = row.value ORDER BY end.at DESC LIMIT 1 OFFSET :most), 0
    );

-- name: drop_places_ahead
-- Places with a future time come from before the clock was set back: they would hold up all jobs behind them.
DELETE FROM {gate_place} WHERE key IN (SELECT value FROM json_each(:keys)) AND given_at > :ahead;

-- name: own_places
SELECT CAST(json_group_array(json_array(place.key, place.at, place.job_id)) AS BLOB)
FROM json_each(:askers) AS row
CROSS JOIN {gate_place} AS place ON place.key = row.value ->> 0 AND place.job_id = row.value ->> 1;

-- name: holders
-- How many leases hold each of these keys, and how many of its slots are lent.
SELECT CAST(json_group_array(json_array(row.value, (
    SELECT count(*) + (
        SELECT COALESCE(sum(number), 0) FROM {gate_loan} AS loan WHERE loan.key = row.value AND loan.span = 0
    )
    FROM {gate_hold} AS hold
    CROSS JOIN {lease} AS lease ON lease.job_id = hold.job_id AND lease.token = hold.token
    WHERE hold.key = row.value
))) AS BLOB)
FROM json_each(:keys) AS row;

-- name: breakers_named
SELECT breaker.view FROM json_each(:names) AS row CROSS JOIN {breaker} AS breaker ON breaker.name = row.value;

-- name: breakers
SELECT view FROM {breaker} ORDER BY name;

-- name: leave_places
DELETE FROM {gate_place}
WHERE (key, job_id) IN (SELECT row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row);

-- name: reserve
INSERT INTO {gate_place} (key, at, job_id, until, given_at)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2, row.value ->> 3, row.value ->> 4
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (key, job_id) DO UPDATE SET at = excluded.at, until = excluded.until, given_at = excluded.given_at;

-- name: hold
INSERT INTO {gate_hold} (key, job_id, token)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (key, job_id) DO UPDATE SET token = excluded.token;

-- name: drop_holds
DELETE FROM {gate_hold}
WHERE (key, job_id) IN (SELECT row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row);

-- name: drop_stale_holds
DELETE FROM {gate_hold}
WHERE
    key IN (SELECT row.value FROM json_each(:slots) AS row)
    AND NOT EXISTS (
        SELECT 1 FROM {lease} AS lease WHERE lease.job_id = {gate_hold}.job_id AND lease.token = {gate_hold}.token
    );

-- name: keys_with_line
SELECT row.value FROM json_each(:keys) AS row
WHERE EXISTS (SELECT 1 FROM {gate_wait} AS wait WHERE wait.key = row.value);

-- name: stand_in_line
-- A job with a place keeps it.
INSERT INTO {gate_wait} (key, job_id, size)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (key, job_id) DO UPDATE SET size = excluded.size;

-- name: leave_line
DELETE FROM {gate_wait}
WHERE (key, job_id) IN (SELECT row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row);

-- name: first_in_line
-- The limit with which the first job in line for this key was parked.
SELECT wait.size
FROM {gate_wait} AS wait
CROSS JOIN {parked} AS parked ON parked.job_id = wait.job_id
WHERE wait.key = :key AND parked.state = 'paused' AND parked.reason = {REASON_CONCURRENCY_REACHED}
ORDER BY wait.turn
LIMIT 1;

-- name: next_in_line
SELECT
    CAST(json_group_array(json_array(job_id, queue, unique_key, unique_states, unique_dead_for)) AS BLOB)
FROM (
    SELECT parked.job_id, parked.queue, job.unique_key, job.unique_states, job.unique_dead_for
    FROM {gate_wait} AS wait
    CROSS JOIN {parked} AS parked ON parked.job_id = wait.job_id
    CROSS JOIN {job} AS job ON job.id = parked.job_id
    WHERE
        wait.key = :key AND parked.state = 'paused' AND parked.reason = {REASON_CONCURRENCY_REACHED}
    ORDER BY wait.turn
    LIMIT :room
);

-- name: estimate
INSERT INTO {spend} (name, at, amount, job_id, is_estimate)
SELECT row.value ->> 0, row.value ->> 1, row.value ->> 2, row.value ->> 3, 1
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (name, job_id) WHERE is_estimate = 1 DO UPDATE SET at = excluded.at, amount = excluded.amount;

-- name: drop_ended_estimates
-- Estimates of ended attempts; those that the previous release has summed stay, to be subtracted from the sums.
DELETE FROM {spend}
WHERE
    id IN (
        SELECT spend.id
        FROM {spend} AS spend INDEXED BY {spend_estimate}
        WHERE
            spend.is_estimate = 1 AND spend.summed_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.job_id = spend.job_id)
        LIMIT :limit
    );

-- name: void_ended_estimates
UPDATE {spend} SET amount = 0.0, is_estimate = 0
WHERE
    id IN (
        SELECT spend.id
        FROM {spend} AS spend INDEXED BY {spend_estimate}
        WHERE
            spend.is_estimate = 1 AND spend.summed_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.job_id = spend.job_id)
        LIMIT :limit
    );

-- name: is_held
SELECT 1 FROM {lease} WHERE job_id = :job_id AND token = :token;

-- name: settle_estimate
UPDATE {spend} SET at = :now, amount = :amount, is_estimate = 0
WHERE name = :name AND job_id = :job_id AND is_estimate = 1;

-- name: add_spend
INSERT INTO {spend} (name, at, amount, job_id, is_estimate) VALUES (:name, :now, :amount, :job_id, 0);

-- name: keep_breakers
INSERT INTO {breaker} (name, view)
SELECT row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (name) DO UPDATE SET view = excluded.view;

-- name: forget_places
DELETE FROM {gate_place}
WHERE (key, job_id) IN (SELECT key, job_id FROM {gate_place} WHERE until <= :now ORDER BY until LIMIT :limit);

-- name: forget_spends
-- Name by name, because names are few.
DELETE FROM {spend}
WHERE
    id IN (
        WITH RECURSIVE each_name (name) AS (
            SELECT min(name) FROM {spend}
            UNION ALL
            SELECT (SELECT min(name) FROM {spend} WHERE name > each_name.name)
            FROM each_name WHERE each_name.name IS NOT NULL
        )
        SELECT spend.id
        FROM each_name CROSS JOIN {spend} AS spend ON spend.name = each_name.name AND spend.at <= :old
        LIMIT :limit
    );

-- name: redate_spends
-- Redate spends with a future time from a clock that was set back: they count no longer than others.
UPDATE {spend} SET at = :now
WHERE
    id IN (
        WITH RECURSIVE each_name (name) AS (
            SELECT min(name) FROM {spend}
            UNION ALL
            SELECT (SELECT min(name) FROM {spend} WHERE name > each_name.name)
            FROM each_name WHERE each_name.name IS NOT NULL
        )
        SELECT spend.id
        FROM each_name CROSS JOIN {spend} AS spend ON spend.name = each_name.name AND spend.at > :ahead
        LIMIT :limit
    );

-- name: forget_gates
DELETE FROM {gate} WHERE name IN (SELECT name FROM {gate} WHERE until <= :now ORDER BY until LIMIT :limit);

-- name: stale_holds
-- Along the key from where the last look ended.
SELECT CAST(json_group_array(json_array(key, job_id, is_stale)) AS BLOB)
FROM (
    SELECT
        hold.key, hold.job_id,
        NOT EXISTS (SELECT 1 FROM {lease} AS lease WHERE lease.job_id = hold.job_id AND lease.token = hold.token)
            AS is_stale
    FROM {gate_hold} AS hold
    WHERE (hold.key, hold.job_id) > (:key, :job_id)
    ORDER BY hold.key, hold.job_id
    LIMIT :limit
);

-- name: stale_line
-- The same for jobs that have ended, or are gone.
SELECT CAST(json_group_array(json_array(key, job_id, is_stale)) AS BLOB)
FROM (
    SELECT
        wait.key, wait.job_id,
        NOT EXISTS (SELECT 1 FROM {job} AS job WHERE job.id = wait.job_id)
        OR EXISTS (SELECT 1 FROM {finished} AS finished WHERE finished.job_id = wait.job_id) AS is_stale
    FROM {gate_wait} AS wait
    WHERE (wait.key, wait.job_id) > (:key, :job_id)
    ORDER BY wait.key, wait.job_id
    LIMIT :limit
);

-- name: stale_places
-- And for their places before a rate.
SELECT CAST(json_group_array(json_array(key, job_id, is_stale)) AS BLOB)
FROM (
    SELECT
        place.key, place.job_id,
        NOT EXISTS (SELECT 1 FROM {job} AS job WHERE job.id = place.job_id)
        OR EXISTS (SELECT 1 FROM {finished} AS finished WHERE finished.job_id = place.job_id) AS is_stale
    FROM {gate_place} AS place
    WHERE (place.key, place.job_id) > (:key, :job_id)
    ORDER BY place.key, place.job_id
    LIMIT :limit
);
