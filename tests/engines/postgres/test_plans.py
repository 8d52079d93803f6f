"""Plans are tests: every hot statement finds its rows by the index meant for it, on an empty and on a full database.

The plans are generic ones, made with the settings of the store's own sessions.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from tests.support.databases.behind import with_option
from tests.support.databases.databases import migrate
from tests.support.databases.postgres import drop_schema

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.condition import Condition
from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.sessions import Terms
from perdure.engines.postgres.database.wire import Wire
from perdure.engines.postgres.operate.views.counting import count_query
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL, select
from perdure.engines.postgres.operate.views.insight import floor_query, jobs_query
from perdure.engines.postgres.operate.views.queue_states import QueueStates
from perdure.engines.postgres.operate.views.statistics import WORDS
from perdure.engines.postgres.operate.views.trail import trail_query
from perdure.engines.shared.database.placeholders import numbered
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.records import JobFilter

KEPT_OF_A_JOB = {
    *("attempt_pkey", "step_pkey", "progress_pkey", "line_pkey", "family_pkey", "child_pkey", "waiter_job_id_idx"),
    "plan_pkey",
}
LINE = {"ready_pkey", "ready_queue_priority_fair_key_seq_idx"}  # where those with a fair key stand
HOT: dict[tuple[str, str], set[str]] = {
    ("intake/intake", "insert_one"): {"job_pkey"},
    ("intake/intake", "insert_plain"): {"job_pkey"},
    ("intake/intake", "insert_full"): {"job_pkey", "job_ref_idx", "unique_hold_pkey", *LINE},
    ("intake/intake", "holder"): {"unique_hold_pkey"},
    ("intake/intake", "lock_holder"): {"unique_hold_pkey"},
    ("intake/intake", "let_go"): {"unique_hold_pkey"},
    ("intake/intake", "replace"): {"ready_job_id_idx", "parked_pkey", "job_pkey", *LINE},
    ("intake/intake", "is_beyond_reach"): {"lease_pkey", "finished_pkey"},
    ("claims/claims", "claim_front"): {"ready_pkey", "ready_expr_priority_seq_idx", "job_pkey", "worker_pkey"},
    ("claims/claims", "claim_onward"): {"ready_pkey", "ready_expr_priority_seq_idx", "job_pkey", "worker_pkey"},
    ("claims/claims", "claim_onward_with_returns"): {
        "ready_pkey",
        "ready_expr_priority_seq_idx",
        "job_pkey",
        "worker_pkey",
    },
    ("claims/claims", "has_returns"): {"ready_expr_priority_seq_idx"},
    ("claims/claims", "fronts"): {"ready_pkey", "ready_expr_priority_seq_idx"},
    ("claims/claims", "lost_claims"): {"job_pkey"},
    ("claims/claims", "settle_keys"): {"unique_hold_pkey"},
    ("claims/acknowledgements", "acknowledge_plain"): {"lease_pkey", "worker_pkey"},
    ("claims/acknowledgements", "acknowledge_done"): {"lease_pkey", "worker_pkey"},
    ("claims/acknowledgements", "acknowledge"): {"lease_pkey", "worker_pkey", "unique_hold_pkey", "job_pkey", *LINE},
    ("claims/acknowledgements", "wait_for_more"): {"parked_pkey", "waiter_pkey"},
    ("claims/acknowledgements", "checkpoint"): {"lease_pkey", "job_pkey"},
    ("fleet/workers", "beat"): {"worker_pkey"},
    ("fleet/workers", "cancel_requests"): {"lease_worker_id_idx", "revoked_pkey"},
    ("fleet/upkeep", "promote"): {
        *("parked_due_at_idx", "parked_pkey", "job_pkey", "unique_hold_pkey", "seq_mark_pkey", *LINE),
    },
    ("fleet/upkeep", "mark_number"): {"seq_mark_pkey"},
    ("fleet/upkeep", "forget_marks"): {"seq_mark_pkey"},
    ("fleet/upkeep", "next_due"): {"parked_due_at_idx"},
    ("fleet/upkeep", "overdue"): {"parked_due_at_idx"},
    ("fleet/upkeep", "orphans"): {"lease_pkey", "job_pkey", "worker_pkey"},
    ("fleet/upkeep", "last_return"): {"parked_state_queue_idx"},
    ("fleet/upkeep", "old"): {"finished_state_queue_finished_at_idx"},
    ("fleet/upkeep", "finished_queues"): {"finished_state_queue_finished_at_idx"},
    ("fleet/upkeep", "old_with_kind"): {"finished_state_queue_finished_at_idx", "job_pkey"},
    ("fleet/upkeep", "old_of_kind"): {"finished_kept_as_state_finished_at_idx"},
    ("fleet/upkeep", "forget_jobs"): {"finished_pkey", "job_pkey", *KEPT_OF_A_JOB},
    ("intake/intake", "by_refs"): {"job_ref_idx"},
    ("fleet/upkeep", "forget_holds"): {"unique_hold_expires_at_idx", "unique_hold_pkey"},
    ("fleet/upkeep", "forget_fires"): {"fire_nominal_at_idx"},
    ("operate/views/insight", "attempts"): {"attempt_pkey"},
    ("operate/views/insight", "costs"): {"spend_job_id_name_idx"},
    ("operate/views/insight", "counts"): {
        "ready_pkey",
        "parked_state_queue_idx",
        "finished_state_queue_finished_at_idx",
    },
    ("operate/commands/commands", "requeue"): {"finished_pkey", "job_pkey", "unique_hold_pkey", *LINE},
    ("operate/commands/commands", "cancel"): {
        "ready_job_id_idx",
        "parked_pkey",
        "lease_pkey",
        "job_pkey",
        "unique_hold_pkey",
    },
    ("operate/commands/commands", "run_now"): {"parked_pkey", "job_pkey", "unique_hold_pkey", *LINE},
    ("operate/commands/commands", "reschedule"): {"parked_pkey", "job_pkey"},
    ("operate/commands/commands", "purge"): {"finished_pkey", "job_pkey", *KEPT_OF_A_JOB},
    ("operate/commands/commands", "delete"): {
        "ready_job_id_idx",
        "parked_pkey",
        "lease_pkey",
        "finished_pkey",
        "job_pkey",
    },
    ("operate/commands/commands", "active_children"): {"family_pkey", "child_pkey"},
    ("operate/commands/commands", "erase"): {"job_pkey", "unique_hold_pkey", *KEPT_OF_A_JOB},
    ("schedules/firing", "due_schedules"): {"schedule_next_at_idx"},
    ("schedules/firing", "take"): {"schedule_pkey"},
    ("schedules/firing", "unfinished"): {"ready_job_id_idx", "lease_pkey", "parked_pkey"},
    ("schedules/firing", "record"): {"fire_pkey"},
    ("schedules/firing", "remember"): {"schedule_pkey"},
    ("schedules/schedules", "fires"): {"fire_pkey", "job_pkey"},
    ("fleet/leaders", "lead"): {"leader_pkey"},
    ("fleet/upkeep", "hasten"): {"parked_since_job_id_idx", "job_pkey"},
    ("gates/gates", "enter"): {"gate_pkey"},
    ("gates/gates", "lock"): {"gate_pkey"},
    ("gates/gates", "renew"): {"gate_pkey"},
    ("gates/gates", "look"): {"gate_hold_pkey", "gate_begun_pkey", "gate_loan_key_span_idx", "lease_pkey"},
    ("gates/loans", "lend"): {"gate_loan_pkey"},
    ("gates/loans", "waited_for"): {"gate_loan_pkey", "gate_wait_key_turn_idx", "gate_place_key_at_idx"},
    ("gates/loans", "take_off"): {"gate_loan_pkey"},
    ("gates/loans", "leave"): {"gate_loan_pkey"},
    ("gates/loans", "forget_empty"): {"gate_loan_pkey"},
    ("gates/loans", "recall"): {"gate_loan_pkey"},
    ("gates/gates", "last_places"): {"gate_place_key_at_idx"},
    ("gates/gates", "other_places"): {"gate_place_key_at_idx", "gate_place_pkey"},
    ("gates/spends", "spending"): {
        "spend_name_at_idx",
        "spend_sum_pkey",
        "spend_expr_at_idx",
        "spend_expr_summed_at_idx",
        "spend_name_job_id_idx",
    },
    ("gates/spends", "oldest"): {"spend_name_at_idx"},
    ("gates/spend_sums", "sum_up"): {"spend_expr_at_idx", "spend_pkey", "spend_sum_pkey"},
    ("gates/spend_sums", "forget_sums"): {"spend_sum_pkey", "spend_name_at_idx"},
    ("gates/gates", "leave_places"): {"gate_place_pkey"},
    ("gates/gates", "reserve"): {"gate_place_pkey"},
    ("gates/gates", "stand_in_line"): {"gate_wait_pkey"},
    ("gates/gates", "leave_line"): {"gate_wait_pkey"},
    ("gates/gates", "next_in_line"): {
        "gate_wait_key_turn_idx",
        "gate_hold_pkey",
        "gate_loan_key_span_idx",
        "lease_pkey",
        "parked_pkey",
    },
    ("gates/gates", "estimate"): {"spend_name_job_id_idx"},
    ("gates/gates", "spend"): {"lease_pkey", "spend_name_job_id_idx"},
    ("gates/gates", "ended_estimates"): {"spend_name_job_id_idx", "lease_pkey", "spend_pkey"},
    ("gates/gates", "drop_estimates"): {"spend_pkey", "lease_pkey"},
    ("gates/gates", "forget_places"): {"gate_place_until_idx"},
    ("gates/gates", "forget_spends"): {"spend_name_at_idx"},
    ("gates/gates", "forget_gates"): {"gate_until_idx"},
    ("gates/gates", "stale_holds"): {"gate_hold_pkey", "lease_pkey"},
    ("gates/gates", "begin"): {"gate_begun_pkey"},
    ("gates/gates", "stale_starts"): {"gate_begun_pkey"},
    ("gates/gates", "stale_line"): {"gate_wait_pkey", "job_pkey", "finished_pkey"},
    ("gates/gates", "stale_places"): {"gate_place_pkey", "job_pkey", "finished_pkey"},
    ("gates/breakers", "breakers_named"): {"breaker_pkey"},
    ("gates/breakers", "keep"): {"breaker_pkey"},
    ("flows/waking", "held"): {"parked_reason_job_id_idx"},
    ("flows/waking", "wake"): {"parked_pkey", "job_pkey", "unique_hold_pkey", *LINE},
    ("gates/pauses", "unpaused"): {"parked_reason_job_id_idx"},
    ("flows/linking", "next_link"): {"parked_pkey", "plan_pkey", "child_pkey", "family_pkey"},
    ("flows/linking", "sleep_on"): {"parked_pkey"},
    ("flows/families", "planned"): {"plan_pkey"},
    ("flows/steps", "steps"): {"step_pkey"},
    ("flows/steps", "save_steps"): {"lease_pkey", "step_pkey"},
    ("flows/progress", "save_progress"): {"lease_pkey", "progress_pkey"},
    ("flows/lines", "save_lines"): {"lease_pkey", "line_pkey"},
    ("flows/lines", "lines"): {"line_pkey"},
    ("flows/events", "known"): {"event_pkey"},
    ("flows/events", "emit"): {"event_pkey"},
    ("flows/events", "sleepers"): {"parked_awaits_idx", "waiter_pkey"},
    ("flows/families", "hold"): {"lease_pkey"},
    ("flows/families", "make"): {"job_pkey"},
    ("flows/families", "family"): {"family_pkey"},
    ("flows/families", "families"): {"family_pkey"},
    ("flows/families", "children"): {"child_pkey"},
    ("flows/settling", "lock_families"): {"lease_pkey", "family_pkey", "child_pkey", "child_job_id_idx", "job_pkey"},
    ("flows/settling", "ended_parents"): {"finished_pkey", "family_pkey"},
    ("flows/settling", "cancel_children"): {
        "family_pkey",
        "child_pkey",
        "ready_job_id_idx",
        "parked_pkey",
        "lease_pkey",
        "worker_pkey",
        "job_pkey",
        "unique_hold_pkey",
    },
    ("flows/settling", "settle"): {"child_job_id_idx", "finished_pkey", "attempt_pkey", "family_pkey"},
    ("flows/settling", "lock_revived"): {"child_job_id_idx", "family_pkey"},
    ("flows/settling", "revive"): {"child_job_id_idx", "family_pkey"},
    ("flows/settling", "wake"): {"parked_pkey", "job_pkey", "unique_hold_pkey", *LINE},
}
SMALL = {"worker", "lease", "ready_seq"}  # a fleet's workers, what they hold when they are counted, and one number
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
INSERT INTO seq_mark (at, seq) SELECT now() - n * interval '1 s', 1048576 FROM generate_series(1, 5000) n;
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
INSERT INTO schedule (name, definition, origin, version, next_at, created_at, changed_at)
SELECT 's' || n, '{}', 'made', 1, now() + n * interval '1 s', now(), now() FROM generate_series(1, 10000) n;
INSERT INTO fire (schedule, nominal_at, fate, cause, at)
SELECT 's' || n, now() - d * interval '1 day', 'missed', 'time', now()
FROM generate_series(1, 1000) n, generate_series(1, 20) d;
INSERT INTO gate (name, span, until)
SELECT 'rate:k' || n, interval '1 m', now() + n * interval '1 m' FROM generate_series(1, 5000) n;
INSERT INTO gate_begun (key, at, number, total, until)
SELECT 'k' || n % 1000, now() - n * interval '1 s', 1, n, now() + n * interval '1 s'
FROM generate_series(1, 20000) n;
INSERT INTO gate_place (key, job_id, at, until)
SELECT 'k' || n % 1000, gen_random_uuid(), now() + n * interval '1 s', now() + n * interval '1 m'
FROM generate_series(1, 20000) n;
INSERT INTO gate_hold (key, job_id, token) SELECT 'k' || token, job_id, token FROM lease;
INSERT INTO gate_wait (key, job_id, size)
SELECT 'k' || n % 1000, gen_random_uuid(), 3 FROM generate_series(1, 20000) n;
INSERT INTO gate_loan (key, span, worker_id, number)
SELECT 'k' || n % 1000, (n / 5000) * interval '1 s', 1 + n / 1000, 1 FROM generate_series(0, 19999) n;
INSERT INTO spend (name, at, amount, job_id, is_estimate)
SELECT 'b' || n % 10, now() - n * interval '1 m', 1, gen_random_uuid(), n % 2 = 0 FROM generate_series(1, 20000) n;
UPDATE spend SET summed_at = at, summed_amount = amount WHERE id % 100 > 0;
INSERT INTO spend_sum (name, span, at, amount, number)
SELECT 'b' || n % 10, interval '1 m', now() - n * interval '1 m', 1, 1 FROM generate_series(1, 20000) n;
INSERT INTO breaker (name, view) SELECT 'b' || n, '{}' FROM generate_series(1, 1000) n;
INSERT INTO pause (id, actor, at) VALUES ('p', 'ann', now());
INSERT INTO step (job_id, key, kind, state, tries, begun_at, changed_at)
SELECT job_id, 's' || n, 'call', 'done', 1, now(), now() FROM lease, generate_series(1, 10) n;
INSERT INTO progress (job_id, current, at) SELECT job_id, 1, now() FROM lease;
INSERT INTO line (job_id, number, at, level, text) SELECT job_id, 1, now(), 'info', 'on it' FROM lease;
INSERT INTO family (parent_id, key, total, succeeded, failed, on_end, created_at)
SELECT job_id, 'f', 30, 15, 0, 'cancel', now() FROM lease;
INSERT INTO child (parent_id, family, number, job_id, kind, fate)
SELECT lpad(to_hex(59000 + n / 30), 32, '0')::uuid, 'f', n % 30, lpad(to_hex(n), 32, '0')::uuid, 'k',
       CASE WHEN n % 2 = 0 THEN 'succeeded' END
FROM generate_series(0, 29999) n;
INSERT INTO event (name, actor, at) SELECT 'e' || n, 'a', now() FROM generate_series(1, 10000) n;
UPDATE parked SET awaits = 'event:' || job_id, state = 'waiting' WHERE queue = 'mail';
INSERT INTO revoked (worker_id, job_id, token, at) SELECT worker_id, job_id, token, now() FROM lease;
UPDATE job SET mark = 'read' WHERE priority = 5;
INSERT INTO audit (at, actor, action, job_id)
SELECT now() - n * interval '1 s', CASE WHEN n % 20 = 0 THEN 'ada' ELSE 'system' END,
       CASE WHEN n % 20 = 0 THEN 'read' ELSE 'job_retry' END, gen_random_uuid()
FROM generate_series(1, 20000) n;
ANALYZE;
"""


@contextmanager
def migrated_schema(server: str) -> Iterator[str]:
    schema = f"t_{uuid.uuid4().hex[:16]}"
    migrate(with_option(server, "schema", schema))
    yield schema
    drop_schema(server, schema)


@pytest.fixture(scope="module")
def empty(postgres_url: str) -> Iterator[str]:
    """A schema with empty tables: a plan is only asked for, so that all may ask the same one."""
    with migrated_schema(postgres_url) as schema:
        yield schema


@pytest.fixture(scope="module")
def full(postgres_url: str) -> Iterator[str]:
    """A schema with full tables, for all tests as well."""
    with migrated_schema(postgres_url) as schema:
        with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as connection:
            connection.execute(FILL)
        yield schema


def plan_of(postgres_url: str, sql: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(Terms().for_session(None).encode())
        rows = connection.execute(f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {numbered(sql)[0]}").fetchall()
    return "\n".join(line for (line,) in rows)


def assert_by_index(plan: str, indexes: set[str]) -> None:
    scans = [line.strip() for line in plan.splitlines() if "Seq Scan on" in line]
    assert [scan for scan in scans if scan.split("Seq Scan on ")[1].split()[0] not in SMALL] == [], plan
    assert "Bitmap" not in plan, plan
    for index in indexes:
        assert f"{index} " in plan.replace("\n", " \n") or f"Arbiter Indexes: {index}" in plan, f"{index} in\n{plan}"


@pytest.mark.parametrize(("file", "name"), HOT)
def test_statements_find_their_rows_by_index_on_an_empty_database(
    postgres_url: str, empty: str, file: str, name: str
) -> None:
    """The plan made on the first day is kept until the tables are analysed: it must not be one for empty tables."""
    sql = Naming(empty).statements(f"{file}.sql")[name]
    assert_by_index(plan_of(postgres_url, sql), HOT[file, name])


def test_statements_find_their_rows_by_index_on_a_full_database(postgres_url: str, full: str) -> None:
    for (file, name), indexes in HOT.items():
        sql = Naming(full).statements(f"{file}.sql")[name]
        assert_by_index(plan_of(postgres_url, sql), indexes)


@pytest.mark.parametrize(
    ("which", "indexes"),
    [
        (JobFilter(), {"ready_job_id_idx", "lease_pkey", "parked_pkey", "finished_pkey", "job_pkey", "attempt_pkey"}),
        (JobFilter(states=frozenset({JobState.DEAD})), {"finished_state_job_id_idx", "job_pkey"}),
        (JobFilter(ids=()), {"ready_job_id_idx", "lease_pkey", "parked_pkey", "finished_pkey"}),
        (JobFilter(states="dead", fingerprint="f"), {"finished_fingerprint_job_id_idx", "job_pkey"}),
        (JobFilter(kind="k", error="e", where=Condition("args", ("a",), "=", "word")), {"finished_pkey", "job_pkey"}),
        (JobFilter(states="succeeded"), {"finished_pkey", "job_pkey"}),
        (JobFilter(ref="JB_1"), {"job_ref_idx", "ready_job_id_idx", "lease_pkey", "parked_pkey", "finished_pkey"}),
    ],
    ids=["all", "dead", "ids", "group", "where", "succeeded", "ref"],
)
def test_lists_are_read_along_an_index_of_ids(
    postgres_url: str, full: str, which: JobFilter, indexes: set[str]
) -> None:
    views = Naming(full).statements("operate/views/insight.sql")
    sql = f"SELECT * {jobs_query(views, select(which), 'DESC')}"
    assert_by_index(plan_of(postgres_url, sql), indexes)
    assert_by_index(plan_of(postgres_url, floor_query(views, which)), set())


@pytest.mark.parametrize(
    ("file", "name", "indexes"),
    [
        ("operate/views/failure_groups", "each_group", {"finished_fingerprint_job_id_idx"}),
        ("operate/views/failure_groups", "groups", {"failure_group_pkey", "failure_count_pkey"}),
        ("operate/views/failure_groups", "count_dead", {"finished_fingerprint_job_id_idx"}),
        ("operate/views/failure_groups", "hours", {"failure_count_pkey"}),
        ("operate/views/failure_groups", "unprinted", {"finished_job_id_idx", "job_pkey", "attempt_pkey"}),
        ("operate/views/counting", "failed_alike", {"attempt_fingerprint_job_id_idx"}),
        ("operate/views/counting", "died_alike", {"finished_fingerprint_job_id_idx"}),
    ],
)
def test_groups_of_failures_are_found_by_index(
    postgres_url: str, full: str, file: str, name: str, indexes: set[str]
) -> None:
    assert_by_index(plan_of(postgres_url, Naming(full).statements(f"{file}.sql")[name]), indexes)


def test_jobs_that_all_match_are_counted_where_they_are_read(postgres_url: str, full: str) -> None:
    """Not sent on to a node that groups them: that takes as long again."""
    queue_states = QueueStates(Naming(full), Pool(Server(postgres_url), 1))
    sql, _ = count_query(queue_states, JobFilter(states=("ready", "waiting", "dead")), 10, by_kind=False)
    plan = plan_of(postgres_url, sql)
    assert "HashAggregate" not in plan, plan
    assert "GroupAggregate" not in plan, plan


def test_dead_letters_are_counted_by_kind_without_a_look_at_each_job(postgres_url: str, full: str) -> None:
    """A fingerprint belongs to one kind; only a dead letter without one is looked up."""
    queue_states = QueueStates(Naming(full), Pool(Server(postgres_url), 1))
    sql, _ = count_query(queue_states, JobFilter(states="dead"), 10, by_kind=True)
    plan = plan_of(postgres_url, sql)
    assert "failure_group_pkey" in plan, plan
    assert plan.index("SubPlan") < plan.index("job_pkey"), plan


@pytest.mark.parametrize("schema", ["empty", "full"])
@pytest.mark.parametrize(
    ("which", "by_kind", "indexes", "unread"),
    [
        (JobFilter(), False, {"ready_pkey", "parked_state_queue_idx", "finished_state_queue_finished_at_idx"}, " job "),
        (JobFilter(), True, {"ready_pkey", "finished_state_queue_finished_at_idx", "job_pkey"}, " attempt "),
        (JobFilter(kind="k", queue="q", marked=False), False, {"ready_pkey", "job_pkey"}, " attempt "),
        (JobFilter(states="dead", error="e"), False, {"job_pkey", "attempt_pkey"}, " parked "),
    ],
    ids=["all", "by kind", "queue and kind", "error"],
)
def test_jobs_are_counted_along_the_indexes_up_to_the_cap(
    postgres_url: str,
    request: pytest.FixtureRequest,
    schema: str,
    which: JobFilter,
    by_kind: bool,
    indexes: set[str],
    unread: str,
) -> None:
    """Running jobs, which are few, are walked through once; what is not asked for is not read."""
    queue_states = QueueStates(Naming(request.getfixturevalue(schema)), Pool(Server(postgres_url), 1))
    sql, _ = count_query(queue_states, which, 10, by_kind=by_kind)
    plan = plan_of(postgres_url, sql)
    scans = [line.strip() for line in plan.splitlines() if "Seq Scan on" in line]
    assert all(" on lease " in scan for scan in scans), plan
    asked = plan.split("CTE finished_spot")[-1]
    assert f" on{unread}" not in asked, plan
    for index in indexes:
        assert f"{index} " in plan, plan


@pytest.mark.parametrize("schema", ["empty", "full"])
def test_e10_jobs_that_finished_in_a_time_are_one_stretch_of_an_index(
    postgres_url: str, request: pytest.FixtureRequest, schema: str
) -> None:
    queue_states = QueueStates(Naming(request.getfixturevalue(schema)), Pool(Server(postgres_url), 1))
    plan = plan_of(postgres_url, queue_states.window_query())
    assert "Seq Scan" not in plan, plan
    assert re.search(
        r"finished_state_queue_finished_at_idx on finished f.*\n +Index Cond: .*state = .*queue = .*finished_at > "
        r".*finished_at < ",
        plan,
    ), plan


@pytest.mark.parametrize("schema", ["empty", "full"])
@pytest.mark.parametrize(
    ("which", "index", "sorts"),
    [
        (AuditFilter(), "audit_at_id_idx", False),
        (AuditFilter(actor="system"), "audit_at_id_idx", False),
        (AuditFilter(actor="ada"), "audit_actor_at_id_idx", False),
        (AuditFilter(action="read"), "audit_action_at_id_idx", False),
        (AuditFilter(actor="system", action="read"), "audit_action_at_id_idx", False),
        (AuditFilter(job_id=BEFORE_ALL, actor="ada"), "audit_job_id_idx", True),
    ],
    ids=["all", "system", "actor", "action", "both", "job"],
)
def test_the_audit_trail_is_read_along_an_index(
    postgres_url: str, request: pytest.FixtureRequest, schema: str, which: AuditFilter, index: str, sorts: bool
) -> None:
    """Only the entries of one job, which are few, are sorted; a time is a bound of the index."""
    sql, _ = trail_query(Naming(request.getfixturevalue(schema)).statements("operate/commands/audit.sql"), which)
    plan = plan_of(postgres_url, sql)
    assert f"using {index} on audit" in plan, plan
    assert ("Sort" in plan) is sorts, plan
    assert sorts or "Index Cond: ((ROW(" in plan, plan


@pytest.mark.parametrize("schema", ["empty", "full"])
def test_old_entries_are_found_by_their_time(postgres_url: str, request: pytest.FixtureRequest, schema: str) -> None:
    sql = Naming(request.getfixturevalue(schema)).statements("operate/commands/audit.sql")["forget"]
    assert_by_index(plan_of(postgres_url, sql), {"audit_at_id_idx"})


@pytest.mark.parametrize("schema", ["empty", "full"])
def test_marked_jobs_are_found_by_an_index_of_marks(
    postgres_url: str, request: pytest.FixtureRequest, schema: str
) -> None:
    plan = plan_of(
        postgres_url, Naming(request.getfixturevalue(schema)).statements("operate/views/counting.sql")["marked"]
    )
    assert "using job_mark_id_idx on job" in plan
    assert "Sort" not in plan


@pytest.mark.parametrize("name", ["acknowledge_plain", "acknowledge_done"])
def test_an_acknowledgement_reads_leases_by_key_and_nothing_else(postgres_url: str, full: str, name: str) -> None:
    sql = Naming(full).statements("claims/acknowledgements.sql")[name]
    plan = plan_of(postgres_url, sql)
    assert "Index Scan using lease_pkey" in plan
    assert " job " not in plan
    assert "Hash" not in plan
    assert "Merge" not in plan


def test_jobs_of_one_claim_are_acknowledged_in_one_walk(postgres_url: str, full: str) -> None:
    """Their leases lie side by side: one look at the index from its root for all of them, not one for each."""
    plan = plan_of(postgres_url, Naming(full).statements("claims/acknowledgements.sql")["acknowledge_plain"])
    assert "Index Cond: (job_id = ANY (" in plan, plan


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("fleet/upkeep", "orphans"),
        ("fleet/upkeep", "forget_workers"),
        ("fleet/workers", "workers"),
        ("claims/claims", "lost_claims"),
    ],
)
async def test_what_has_no_index_by_worker_walks_through_the_leases_once(
    postgres_url: str, full: str, file: str, name: str
) -> None:
    """`lease` is as large as what a fleet runs at once: one walk is cheap, one for each worker or job is not."""
    [walk] = await walks_through_leases(
        postgres_url, full, file, name, beforehand=f"UPDATE {full}.worker SET dead_at = now() - interval '2 d'"
    )
    assert "loops=1)" in walk


async def test_while_there_is_no_worker_to_forget_the_leases_are_not_read(postgres_url: str, full: str) -> None:
    """A snapshot that is held open keeps the rows of all leases there ever were: they are no quick read."""
    [walk] = await walks_through_leases(postgres_url, full, "fleet/upkeep", "forget_workers")
    assert "(never executed)" in walk


async def walks_through_leases(
    postgres_url: str, schema: str, file: str, name: str, beforehand: str = "SELECT"
) -> list[str]:
    """What a plan that was carried out tells of them."""
    sql = Naming(schema).statements(f"{file}.sql")[name]
    params = {"worker": 1, "token": 0, "now": None, "after": BEFORE_ALL, "limit": 100}
    server = Server(postgres_url)
    async with (
        await server.connect(Terms(generic_plans=True)) as connection,
        connection.transaction(force_rollback=True),
    ):
        await connection.execute(beforehand)
        rows = await Wire(connection, prepare=True).fetch(
            f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) {sql}", params
        )
    return [line for (line,) in rows if re.search(r"Scan.* on lease\b", line)]


@pytest.mark.parametrize(
    ("file", "name"),
    [("schedules/firing", "due_schedules"), ("fleet/upkeep", "orphans")],
)
def test_long_lists_are_looked_up_by_hash(postgres_url: str, full: str, file: str, name: str) -> None:
    """Ten thousand declared names or a large fleet are not gone through again for every row."""
    plan = plan_of(postgres_url, Naming(full).statements(f"{file}.sql")[name])
    asked = [line for line in plan.splitlines() if "SubPlan" in line and "Filter" in line]
    assert asked, plan
    assert all("hashed SubPlan" in line for line in asked), plan


def test_waking_many_jobs_goes_through_their_list_once(postgres_url: str, empty: str) -> None:
    """An event may wake ten thousand: the list of what came is not searched again for each of them."""
    plan = plan_of(postgres_url, Naming(empty).statements("flows/settling.sql")["wake"])
    assert plan.count("Function Scan on unnest i") + plan.count("Function Scan on i") == 1, plan


@pytest.mark.parametrize("schema", ["empty", "full"])
@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("add", {"statistic_part_pkey", "statistic_writer_pkey"}),
        ("roll_up", {"statistic_part_pkey", "statistic_pkey"}),
        ("forget", {"statistic_pkey"}),
        ("statistics", {"statistic_pkey", "statistic_part_pkey"}),
    ],
)
def test_statistics_are_read_in_the_stretch_that_is_asked_for(
    postgres_url: str, request: pytest.FixtureRequest, schema: str, name: str, indexes: set[str]
) -> None:
    """A page of an hour costs the same after 90 days."""
    plan = plan_of(
        postgres_url, Naming(request.getfixturevalue(schema)).statements("operate/views/statistics.sql", WORDS)[name]
    )
    assert_by_index(plan, indexes)
    if name == "statistics":
        assert re.search(r"Index Cond: \(\(span = .*facet = .*at >= .*at < ", plan), plan
