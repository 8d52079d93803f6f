-- name: lend
INSERT INTO {gate_loan} (key, span, worker_id, number)
SELECT row.value ->> 0, row.value ->> 1, :worker_id, row.value ->> 2
FROM json_each(:rows) AS row
WHERE true
ON CONFLICT (key, span, worker_id) DO UPDATE SET number = number + excluded.number;

-- name: take_off
-- The plus keeps the planner from the index by worker: each row is found by its key.
UPDATE {gate_loan} SET number = number - (row.value ->> 2)
FROM json_each(:rows) AS row
WHERE {gate_loan}.key = row.value ->> 0 AND span = row.value ->> 1 AND +worker_id = :worker_id;

-- name: leave
UPDATE {gate_loan} SET number = MIN(number, row.value ->> 2)
FROM json_each(:rows) AS row
WHERE {gate_loan}.key = row.value ->> 0 AND span = row.value ->> 1 AND +worker_id = :worker_id;

-- name: forget_empty
DELETE FROM {gate_loan}
WHERE
    (key, span, +worker_id) IN (SELECT row.value ->> 0, row.value ->> 1, :worker_id FROM json_each(:rows) AS row)
    AND number <= 0;

-- name: loans
SELECT key, span, number FROM {gate_loan} WHERE worker_id = :worker_id;

-- name: waited_for
-- One seek shows whether any job waits.
SELECT loan.key, loan.span FROM {gate_loan} AS loan
WHERE
    loan.worker_id = :worker_id
    AND (EXISTS (SELECT 1 FROM {gate_wait}) OR EXISTS (SELECT 1 FROM {gate_place}))
    AND CASE
        WHEN loan.span = 0 THEN EXISTS (SELECT 1 FROM {gate_wait} AS wait WHERE wait.key = loan.key)
        ELSE EXISTS (SELECT 1 FROM {gate_place} AS place WHERE place.key = loan.key)
    END;

-- name: dead_borrowers
-- Dead or forgotten workers with loans, and how many jobs they still hold.
WITH RECURSIVE borrower (id) AS (
    SELECT min(worker_id) FROM {gate_loan}
    UNION ALL
    SELECT (SELECT min(worker_id) FROM {gate_loan} WHERE worker_id > borrower.id) FROM borrower
    WHERE borrower.id IS NOT NULL
)
SELECT
    borrower.id, COALESCE(worker.dead_at, 0),
    (SELECT count(*) FROM {lease} AS lease WHERE lease.worker_id = borrower.id)
FROM borrower LEFT JOIN {worker} AS worker ON worker.id = borrower.id
WHERE borrower.id IS NOT NULL AND (worker.id IS NULL OR worker.dead_at IS NOT NULL);

-- name: cut_slots
UPDATE {gate_loan} SET number = MIN(number, :jobs)
WHERE worker_id = :worker_id AND span = 0 AND number > :jobs
RETURNING key;

-- name: recall
DELETE FROM {gate_loan}
WHERE worker_id = :worker_id AND (number <= 0 OR span BETWEEN 1 AND :silent_for);
