"""Plans are tests: every hot statement finds its rows by the index meant for it, on an empty and on a full database.

The plans are generic ones, made with the settings of the store's own sessions.
"""

from __future__ import annotations

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask

from perdure.domain.states import JobState
from perdure.engines.placeholders import numbered
from perdure.engines.postgres.connections import _BASE
from perdure.engines.postgres.filters import select
from perdure.engines.postgres.insight import jobs_query
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.store import PostgresStore
from perdure.storage.records import JobFilter

HOT: dict[tuple[str, str], set[str]] = {
    ("intake", "insert_one"): {"job_pkey"},
    ("intake", "insert_plain"): {"job_pkey"},
    ("intake", "insert_full"): {"job_pkey", "unique_hold_pkey"},
    ("intake", "holder"): {"unique_hold_pkey"},
    ("intake", "lock_holder"): {"unique_hold_pkey"},
    ("intake", "let_go"): {"unique_hold_pkey"},
    ("intake", "replace"): {"ready_job_id_idx", "parked_pkey", "job_pkey"},
    ("intake", "is_beyond_reach"): {"lease_pkey", "finished_pkey"},
    ("claims", "claim_front"): {"ready_pkey", "job_pkey", "worker_pkey"},
    ("claims", "claim_onward"): {"ready_pkey", "job_pkey", "worker_pkey"},
    ("claims", "lost_claims"): {"job_pkey"},
    ("claims", "settle_keys"): {"unique_hold_pkey"},
    ("acknowledgements", "acknowledge_done"): {"lease_pkey", "worker_pkey"},
    ("acknowledgements", "acknowledge"): {"lease_pkey", "worker_pkey", "unique_hold_pkey"},
    ("workers", "beat"): {"worker_pkey"},
    ("workers", "cancel_requests"): {"lease_worker_id_idx"},
    ("upkeep", "promote"): {"parked_due_at_idx", "parked_pkey", "job_pkey", "unique_hold_pkey"},
    ("upkeep", "next_due"): {"parked_due_at_idx"},
    ("upkeep", "orphans"): {"lease_worker_id_job_id_idx", "job_pkey"},
    ("upkeep", "prune"): {"finished_state_queue_finished_at_idx", "finished_pkey", "attempt_pkey", "job_pkey"},
    ("upkeep", "forget_holds"): {"unique_hold_expires_at_idx", "unique_hold_pkey"},
    ("insight", "attempts"): {"attempt_pkey"},
    ("insight", "counts"): {"ready_pkey", "parked_state_queue_idx", "finished_state_queue_finished_at_idx"},
    ("commands", "requeue"): {"finished_pkey", "job_pkey", "unique_hold_pkey"},
    ("commands", "cancel"): {"ready_job_id_idx", "parked_pkey", "lease_pkey", "job_pkey", "unique_hold_pkey"},
    ("commands", "run_now"): {"parked_pkey", "job_pkey", "unique_hold_pkey"},
    ("commands", "purge"): {"finished_pkey", "attempt_pkey", "job_pkey"},
}
SMALL = {"worker", "lease"}  # a fleet's workers, and what they hold when they are counted
FILL = """
INSERT INTO job (id, kind, queue, priority, args, created_at, crash_limit, unique_key, unique_states)
SELECT lpad(to_hex(n), 32, '0')::uuid, 'k', CASE WHEN n % 10 = 0 THEN 'mail' ELSE 'default' END, 5, '{}', now(), 3,
       CASE WHEN n % 50 = 0 THEN 'key ' || n END, CASE WHEN n % 50 = 0 THEN 'ready,running' END
FROM generate_series(1, 60000) n;
INSERT INTO finished (job_id, queue, state, reason, finished_at, failures, crashes, since)
SELECT id, queue, CASE WHEN random() < 0.02 THEN 'dead' ELSE 'succeeded' END, 'done', now() - random() * interval '9 d',
       0, 0, now()
FROM job WHERE id < lpad(to_hex(40000), 32, '0')::uuid;
INSERT INTO ready (queue, priority, job_id, since)
SELECT queue, priority, id, now() FROM job
WHERE id BETWEEN lpad(to_hex(40000), 32, '0')::uuid AND lpad(to_hex(49999), 32, '0')::uuid;
INSERT INTO parked (job_id, queue, priority, state, reason, due_at, since, parked_at)
SELECT id, queue, priority, 'scheduled', 'enqueued', now() + random() * interval '1 d', now(), now() FROM job
WHERE id BETWEEN lpad(to_hex(50000), 32, '0')::uuid AND lpad(to_hex(58999), 32, '0')::uuid;
INSERT INTO lease (job_id, token, worker_id, queue, priority, failures, crashes, since, claimed_at)
SELECT id, 1, 1 + random() * 20, queue, priority, 0, 0, now(), now() FROM job
WHERE id >= lpad(to_hex(59000), 32, '0')::uuid;
INSERT INTO attempt (job_id, token, number, reason, worker, started_at, finished_at, error_type, message)
SELECT job_id, 1, 1, 'failed', 'w', now(), now(), 'E', 'm' FROM finished WHERE state = 'dead';
INSERT INTO unique_hold (key, job_id)
SELECT sha256(convert_to(unique_key, 'UTF8')), id FROM job WHERE unique_key IS NOT NULL;
INSERT INTO worker (name, host, pid, process_started, queues, concurrency, version, started_at, beat_at)
SELECT 'w', 'h', n, 1, '{}', 1, '1', now(), now() FROM generate_series(1, 30) n;
ANALYZE;
"""


def plan_of(postgres_url: str, sql: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, value in _BASE.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        rows = connection.execute(f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {numbered(sql)[0]}").fetchall()
    return "\n".join(line for (line,) in rows)


def assert_by_index(plan: str, indexes: set[str]) -> None:
    scans = [line.strip() for line in plan.splitlines() if "Seq Scan on" in line]
    assert [scan for scan in scans if scan.split("Seq Scan on ")[1].split()[0] not in SMALL] == [], plan
    assert "Bitmap" not in plan, plan
    for index in indexes:
        assert f"{index} " in plan.replace("\n", " \n") or f"Arbiter Indexes: {index}" in plan, f"{index} in\n{plan}"


@pytest.mark.parametrize(("file", "name"), HOT)
async def test_statements_find_their_rows_by_index_on_an_empty_database(
    pg_store: PostgresStore, postgres_url: str, schema: str, file: str, name: str
) -> None:
    """The plan made on the first day is kept until the tables are analysed: it must not be one for empty tables."""
    sql = Naming(schema).statements(f"{file}.sql")[name]
    assert_by_index(plan_of(postgres_url, sql), HOT[file, name])


async def test_statements_find_their_rows_by_index_on_a_full_database(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    ask(FILL)
    for (file, name), indexes in HOT.items():
        sql = Naming(schema).statements(f"{file}.sql")[name]
        assert_by_index(plan_of(postgres_url, sql), indexes)


@pytest.mark.parametrize(
    ("which", "indexes"),
    [
        (JobFilter(), {"ready_job_id_idx", "lease_pkey", "parked_pkey", "finished_pkey", "job_pkey", "attempt_pkey"}),
        (JobFilter(states=frozenset({JobState.DEAD})), {"finished_state_job_id_idx", "job_pkey"}),
        (JobFilter(ids=()), {"ready_job_id_idx", "lease_pkey", "parked_pkey", "finished_pkey"}),
    ],
    ids=["all", "dead", "ids"],
)
async def test_lists_are_read_along_an_index_of_ids(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask, which: JobFilter, indexes: set[str]
) -> None:
    ask(FILL)
    views = Naming(schema).statements("insight.sql")
    sql = f"SELECT * {jobs_query(views, select(which), 'DESC')}"
    assert_by_index(plan_of(postgres_url, sql), indexes)


async def test_an_acknowledgement_reads_leases_by_key_and_nothing_else(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    ask(FILL)
    sql = Naming(schema).statements("acknowledgements.sql")["acknowledge_done"]
    plan = plan_of(postgres_url, sql)
    assert "Index Scan using lease_pkey" in plan
    assert " job " not in plan
    assert "Hash" not in plan
    assert "Merge" not in plan
