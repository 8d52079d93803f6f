"""The history of the benchmark, written into a SQLite file."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Final

import apsw

from benchmarks.desk.history import ATTEMPTS, GROUPS, KINDS, LENGTH, NEVER, QUEUES, TRACEBACK, groups
from perdure.engines.shared.database.instants import span, to_micros

_SHAPE: Final = """
CREATE TEMP TABLE shape AS
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :jobs),
moment (i, at) AS (SELECT i, :begins + i * :length / :jobs FROM n),
drawn (i, at, hex, lot, dead_lot) AS (
    SELECT i, at, printf('%012x', at / 1000), i * 7919 % 1000, (i * 104729 % 1000003) / 1000003.0 FROM moment
),
described AS (
    SELECT
        i, at,
        substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7'
            || printf('%03x-8%03x-%012x', i / 4096 % 4096, i % 4096, i) AS id,
        CASE
            WHEN lot < 100 THEN 'dead' WHEN lot < 110 THEN 'cancelled' WHEN lot < 120 THEN 'scheduled'
            WHEN lot < 130 THEN 'retrying' WHEN lot < 140 THEN 'waiting' ELSE 'succeeded'
        END AS state,
        CAST(:groups * dead_lot * dead_lot * dead_lot AS INTEGER) AS party
    FROM drawn
)
SELECT
    *, json_extract(:kinds, '$[' || (party % 50) || ']') AS kind,
    json_extract(:queues, '$[' || (party % 5) || ']') AS queue
FROM described;
"""
_JOBS: Final = """
INSERT INTO perdure_job (id, kind, queue, priority, args, created_at, max_attempts, crash_limit, tags, turn)
SELECT
    id, kind, queue, 5,
    json_object('user', json_object('id', i % 50000), 'order', i, 'url', 'https://shop.example/orders/' || i), at, 5, 3,
    CASE WHEN i % 20 = 0 THEN json_array('vip') END, i
FROM shape;
INSERT INTO perdure_finished (
    job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since, result, fingerprint
)
SELECT
    shape.id, shape.queue, shape.state,
    CASE shape.state WHEN 'dead' THEN 'attempts exhausted' WHEN 'cancelled' THEN 'cancelled' ELSE 'done' END,
    shape.at + 200000, shape.at + 700000, 'history', CASE shape.state WHEN 'dead' THEN 5 ELSE 0 END, 0, shape.at,
    CASE shape.state WHEN 'succeeded' THEN '{"ok":true}' END,
    CASE shape.state WHEN 'dead' THEN party.fingerprint END
FROM shape JOIN party ON party.number = shape.party
WHERE shape.state IN ('succeeded', 'dead', 'cancelled');
INSERT INTO perdure_parked (job_id, queue, state, reason, due_at, failures, crashes, since, parked_at, awaits)
SELECT
    id, queue, state,
    CASE state WHEN 'scheduled' THEN 'enqueued' WHEN 'retrying' THEN 'failed' ELSE 'waiting for an event' END,
    at + :never, CASE state WHEN 'retrying' THEN 2 ELSE 0 END, 0, at, at,
    CASE state WHEN 'waiting' THEN 'event:paid:' || i END
FROM shape WHERE state IN ('scheduled', 'retrying', 'waiting');
INSERT INTO perdure_waiter (event, job_id) SELECT 'paid:' || i, id FROM shape WHERE state = 'waiting';
INSERT INTO perdure_attempt (
    job_id, token, number, reason, worker, started_at, finished_at, error_type, message, traceback, fingerprint
)
SELECT
    shape.id, tried.value, tried.value, 'failed', 'history', shape.at + 200000, shape.at + 700000, party.type,
    party.said, :traceback, party.fingerprint
FROM shape JOIN party ON party.number = shape.party CROSS JOIN json_each(:tries) AS tried
WHERE shape.state IN ('dead', 'retrying');
INSERT INTO perdure_failure_group (fingerprint, kind, error_type, message, first_at, last_at)
SELECT fingerprint, kind, type, message, first_at, last_at FROM party ORDER BY fingerprint;
INSERT INTO perdure_failure_count (fingerprint, hour, deaths, failures)
SELECT party.fingerprint, shape.at / 3600000000 * 3600000000, sum(shape.state = 'dead'), 2 * count(*)
FROM shape JOIN party ON party.number = shape.party
WHERE shape.state IN ('dead', 'retrying') GROUP BY 1, 2;
"""
_PARTY: Final = """
CREATE TEMP TABLE party AS
SELECT
    value ->> 'number' AS number, value ->> 'fingerprint' AS fingerprint, value ->> 'kind' AS kind,
    value ->> 'type' AS type, value ->> 'said' AS said, value ->> 'message' AS message,
    value ->> 'first_at' AS first_at, value ->> 'last_at' AS last_at
FROM json_each(:rows);
CREATE UNIQUE INDEX party_number ON party (number);
"""


def write_history(path: str, jobs: int, now: datetime) -> None:
    """Write so many jobs of the time before `now` into a migrated file that no process has open."""
    rows = [group | {name: to_micros(group[name]) for name in ("first_at", "last_at")} for group in groups(now)]
    connection = apsw.Connection(str(Path(path)))
    connection.execute("PRAGMA synchronous = off")  # of this connection only: a fill that is lost is done again
    connection.execute("PRAGMA cache_size = -200000")
    params = {
        "jobs": jobs,
        "begins": to_micros(now - LENGTH),
        "length": span(LENGTH),
        "groups": GROUPS,
        "kinds": json.dumps(KINDS),
        "queues": json.dumps(QUEUES),
        "never": span(NEVER),
        "traceback": TRACEBACK.replace("\\n", "\n"),
        "tries": json.dumps(list(range(1, ATTEMPTS + 1))),
        "rows": json.dumps(rows),
    }
    with connection:
        for statements in (_PARTY, _SHAPE, _JOBS):
            connection.execute(statements, params)
    connection.execute("PRAGMA wal_checkpoint(truncate)")
    connection.close()
