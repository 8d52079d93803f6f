"""The history of the benchmark, written into a PostgreSQL database."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

import psycopg

from benchmarks.desk.history import ATTEMPTS, GROUPS, KINDS, LENGTH, NEVER, QUEUES, TRACEBACK, groups

_PARTY: Final = """
CREATE TEMP TABLE party AS
SELECT * FROM json_to_recordset(%(rows)s::json) AS row (
    number int, fingerprint text, kind text, type text, said text, message text,
    first_at timestamptz, last_at timestamptz
)
"""
_SHAPE: Final = """
CREATE TEMP TABLE shape AS
SELECT
    i, at,
    (
        lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i / 4096 %% 4096), 3, '0')
        || '8' || lpad(to_hex(i), 15, '0')
    )::uuid AS id,
    CASE
        WHEN lot < 100 THEN 'dead' WHEN lot < 110 THEN 'cancelled' WHEN lot < 120 THEN 'scheduled'
        WHEN lot < 130 THEN 'retrying' WHEN lot < 140 THEN 'waiting' ELSE 'succeeded'
    END AS state,
    party, (%(kinds)s::text[])[party %% 50 + 1] AS kind, (%(queues)s::text[])[party %% 5 + 1] AS queue
FROM (
    SELECT
        i, %(begins)s::timestamptz + i * (%(length)s::interval / %(jobs)s) AS at, i * 7919 %% 1000 AS lot,
        floor(%(groups)s * (i * 104729 %% 1000003 / 1000003.0) ^ 3)::int AS party
    FROM generate_series(0, %(jobs)s::bigint - 1) AS i
) AS drawn
"""
_JOBS: Final = (
    """
    INSERT INTO perdure.job (id, kind, queue, priority, args, created_at, max_attempts, crash_limit, tags)
    SELECT
        id, kind, queue, 5,
        format('{"user":{"id":%%s},"order":%%s,"url":"https://shop.example/orders/%%s"}', i %% 50000, i, i), at, 5, 3,
        CASE WHEN i %% 20 = 0 THEN '{vip}'::text[] END
    FROM shape ORDER BY i
    """,
    """
    INSERT INTO perdure.finished (
        job_id, queue, state, reason, started_at, finished_at, worker, failures, crashes, since, result, fingerprint
    )
    SELECT
        s.id, s.queue, s.state,
        CASE s.state WHEN 'dead' THEN 'attempts exhausted' WHEN 'cancelled' THEN 'cancelled' ELSE 'done' END,
        s.at + interval '200 ms', s.at + interval '700 ms', 'history',
        CASE s.state WHEN 'dead' THEN 5 ELSE 0 END, 0, s.at,
        CASE s.state WHEN 'succeeded' THEN '{"ok":true}' END, CASE s.state WHEN 'dead' THEN g.fingerprint END
    FROM shape s JOIN party g ON g.number = s.party
    WHERE s.state IN ('succeeded', 'dead', 'cancelled') ORDER BY s.i
    """,
    """
    INSERT INTO perdure.parked (
        job_id, queue, priority, state, reason, due_at, failures, crashes, since, parked_at, awaits
    )
    SELECT
        id, queue, 5, state,
        CASE state WHEN 'scheduled' THEN 'enqueued' WHEN 'retrying' THEN 'failed' ELSE 'waiting for an event' END,
        at + %(never)s::interval, CASE state WHEN 'retrying' THEN 2 ELSE 0 END, 0, at, at,
        CASE state WHEN 'waiting' THEN 'event:paid:' || i END
    FROM shape WHERE state IN ('scheduled', 'retrying', 'waiting') ORDER BY i
    """,
    "INSERT INTO perdure.waiter (event, job_id) SELECT 'paid:' || i, id FROM shape WHERE state = 'waiting'",
    """
    INSERT INTO perdure.attempt (
        job_id, token, number, reason, worker, started_at, finished_at, error_type, message, traceback, fingerprint
    )
    SELECT
        s.id, tried, tried, 'failed', 'history', s.at + interval '200 ms', s.at + interval '700 ms', g.type, g.said,
        %(traceback)s, g.fingerprint
    FROM shape s JOIN party g ON g.number = s.party CROSS JOIN generate_series(1, %(tries)s) AS tried
    WHERE s.state IN ('dead', 'retrying') ORDER BY s.i, tried
    """,
    """
    INSERT INTO perdure.failure_group (fingerprint, kind, error_type, message, first_at, last_at)
    SELECT fingerprint, kind, type, message, first_at, last_at FROM party
    """,
    """
    INSERT INTO perdure.failure_count (fingerprint, hour, shard, deaths, failures, last_at)
    SELECT g.fingerprint, date_trunc('hour', s.at), 0, count(*) FILTER (WHERE s.state = 'dead'), 2 * count(*), max(s.at)
    FROM shape s JOIN party g ON g.number = s.party
    WHERE s.state IN ('dead', 'retrying') GROUP BY 1, 2
    """,
)


def write_history(url: str, jobs: int, now: datetime) -> None:
    """Write so many jobs of the time before `now` into a migrated database."""
    params = {
        "jobs": jobs,
        "begins": now - LENGTH,
        "length": LENGTH,
        "groups": GROUPS,
        "kinds": list(KINDS),
        "queues": list(QUEUES),
        "never": NEVER,
        "traceback": TRACEBACK.replace("\\n", "\n"),
        "tries": ATTEMPTS,
        "rows": json.dumps(groups(now), default=datetime.isoformat),
    }
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET work_mem = '256MB'")
        for statement in (_PARTY, _SHAPE, *_JOBS):
            connection.execute(statement.encode(), params)
        connection.execute("DROP TABLE shape")
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
