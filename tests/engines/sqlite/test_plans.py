"""The plans of the statements: hot ones seek, whatever the database holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import job_in

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.states import FINAL, JobState
from perdure.domain.operate.condition import Condition
from perdure.engines.sqlite.operate.views.filters import Selector
from perdure.engines.sqlite.operate.views.queue_states import QueueStates
from perdure.engines.sqlite.operate.views.statistics import WORDS
from perdure.engines.sqlite.operate.views.trail import trail_query
from perdure.engines.sqlite.store import SqliteStore
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.records import JobFilter

HOT: Final = {
    "intake/intake.sql": (
        "add_job add_ready add_parked add_alike_jobs add_alike_ready add_jobs add_all_ready add_all_parked placeless "
        "lock front_turn last_fair_turn note_fair_turns "
        "take_key key_holder drop_key pass_key_on stored waiting_place leave_ready replace_job postpone leave_parked"
    ),
    "claims/claims.sql": (
        "pick spend_token hold take_out pick_of_level hold_of_level take_out_of_level fronts checkpoint"
    ),
    "claims/acknowledgements.sql": (
        "succeed_plainly succeed end park line_up note_turns fair_ones record_attempts stale let_go"
    ),
    "intake/keys.sql": "drop_keys take_keys denied",
    "fleet/workers.sql": "beat retire cancel_requests forget_revoked report wants_quiet",
    "operate/commands/audit.sql": "write write_each note_command note_moves note_children at forget",
    "fleet/upkeep.sql": (
        "next_due due ready_from_parked note_turns fair_ones leave_waiters leave_parked hold_back old forget_attempts "
        "forget_steps forget_progress forget_lines forget_waiters forget_joined forget_children "
        "some_children forget_some_joined forget_some_children forget_families "
        "forget_plans forget_keys forget_finished forget_jobs last_return forget_fires"
    ),
    "operate/commands/commands.sql": (
        "ready_from_finished leave_finished ask_to_stop reschedule note_run_at mark unmark make_quiet make_loud"
    ),
    "operate/commands/cancels.sql": (
        "cancel_ready leave_ready cancel_parked leave_parked leave_waiters cancel_lease revoke leave_lease"
    ),
    "flows/settling.sql": (
        "settle_children revive_children count_ends waiting_parents active_children ended_joined_of close_joined "
        "reopen_joined"
    ),
    "flows/families.sql": (
        "is_held family families several children add_family add_children note_parent note_is_parent planned"
    ),
    "flows/linking.sql": "next_link sleep_on",
    "flows/steps.sql": "steps save lost",
    "flows/events.sql": "add_event event known waiting add_waiters drop_waiters",
    "flows/progress.sql": "save progress",
    "flows/lines.sql": "save drop_old lines",
    "gates/gates.sql": (
        "lost gates keep_gates begin near_places last_places own_places holds breakers_named "
        "leave_places reserve hold drop_holds lives keys_with_line holders stand_in_line leave_line "
        "first_in_line next_in_line estimate is_held settle_estimate add_spend keep_breakers forget_places "
        "forget_gates stale_holds stale_line stale_places"
    ),
    "gates/loans.sql": "lend take_off leave forget_empty cut_slots recall",
    "gates/spends.sql": "totals estimates oldest",
    "gates/spend_sums.sql": "unsummed note_summed",
    "schedules/schedules.sql": "change note_declared pause resume forget forget_fires fires",
    "schedules/firing.sql": "advance known recorded unfinished note_jobs record",
    "fleet/leaders.sql": "leader lead step_down",
    "operate/views/insight.sql": "attempts costs",
    "fleet/signals.sql": "anything",
}
HOT_STATEMENTS: Final = [(file, name) for file, names in HOT.items() for name in names.split()]
# What may be walked through: the batch itself, results of a subquery, and the first row of a line or of an index.
HARMLESS: Final = re.compile(
    r"SCAN (row|json_each|\(subquery-\d+\)|held|part|waiting|perdure_ready|CONSTANT ROW)(?!\w)"
    r"|SCAN perdure_lease USING INDEX perdure_lease_cancel"
    r"|SCAN perdure_spend USING INDEX perdure_spend_unsummed"  # a backlog, as far as a batch goes
)


async def plan_of(store: SqliteStore, sql: str) -> list[str]:
    names = set(re.findall(r"(?<!:):([a-z_]+)", re.sub(r"'[^']*'|--.*", "", sql)))
    params = dict.fromkeys(names) if names else (None,) * sql.count("?")
    rows = await store._database.read(lambda transaction: transaction.run(f"EXPLAIN QUERY PLAN {sql}", params))
    return [row[3] for row in rows]


@pytest.mark.parametrize(("file", "name"), HOT_STATEMENTS)
async def test_hot_statement_seeks(sqlite: SqliteStore, file: str, name: str) -> None:
    """Its cost does not grow with history: no table is walked through, and nothing is sorted."""
    plan = await plan_of(sqlite, sqlite._database.statements(file)[name])
    walks = [line for line in plan if line.startswith("SCAN") and not HARMLESS.match(line)]
    sorts = [line for line in plan if "TEMP B-TREE" in line]
    assert (walks, sorts) == ([], [])


async def test_claim_reads_the_front_of_its_queue(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("claims/claims.sql")["pick"])
    assert "SEARCH ready USING PRIMARY KEY (queue=?)" in plan
    assert "SEARCH job USING PRIMARY KEY (id=?)" in plan


@pytest.mark.parametrize("name", ["hold", "take_out"])
async def test_claim_moves_one_stretch_of_its_queue(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("claims/claims.sql")[name])
    assert plan == ["SEARCH perdure_ready USING PRIMARY KEY (queue=? AND (priority,turn,job_id)<(?,?,?))"]


@pytest.mark.parametrize("name", ["due", "next_due", "overdue"])
async def test_promote_finds_what_is_due_by_index(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("fleet/upkeep.sql")[name])
    assert any(
        "USING INDEX perdure_parked_due" in line or "USING COVERING INDEX perdure_parked_due" in line for line in plan
    )
    assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize(
    ("file", "name", "reason", "index"),
    [
        ("flows/waking.sql", "held", "on hold", "on_hold"),
        ("flows/waking.sql", "held", "circuit breaker open", "breaker"),
        ("gates/pauses.sql", "unpaused", "on hold", "on_hold"),
    ],
)
async def test_jobs_set_free_are_found_among_the_held_ones(
    sqlite: SqliteStore, file: str, name: str, reason: str, index: str
) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements(file, {"reason_held": f"'{reason}'"})[name])
    assert any(f"parked USING INDEX perdure_parked_{index}" in line for line in plan)
    assert not any("TEMP B-TREE" in line for line in plan)


async def test_a_line_is_read_in_its_order(sqlite: SqliteStore) -> None:
    for name in ("first_in_line", "next_in_line"):
        plan = await plan_of(sqlite, sqlite._database.statements("gates/gates.sql")[name])
        assert any("USING INDEX perdure_gate_wait_turn (key=?)" in line for line in plan), plan


@pytest.mark.parametrize("name", ["take_off", "leave", "forget_empty"])
async def test_g8_each_loan_that_goes_back_is_found_by_its_key(sqlite: SqliteStore, name: str) -> None:
    """A worker may have thousands: none of them is looked for among all the others."""
    plan = await plan_of(sqlite, sqlite._database.statements("gates/loans.sql")[name])
    found = [line for line in plan if "perdure_gate_loan" in line]
    assert found == ["SEARCH perdure_gate_loan USING PRIMARY KEY (key=? AND span=?)"]


async def test_g8_who_waits_for_a_loan_is_looked_up_by_its_key(sqlite: SqliteStore) -> None:
    """Of all that wait for anything else only the first is looked at."""
    plan = await plan_of(sqlite, sqlite._database.statements("gates/loans.sql")["waited_for"])
    assert "SEARCH loan USING COVERING INDEX perdure_gate_loan_worker (worker_id=?)" in plan
    assert "SEARCH wait USING COVERING INDEX perdure_gate_wait_turn (key=?)" in plan
    assert "SEARCH place USING COVERING INDEX perdure_gate_place_at (key=?)" in plan


async def test_g8_what_is_lent_is_counted_by_key(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("gates/gates.sql")["lent"])
    assert "SEARCH loan USING PRIMARY KEY (key=?)" in plan
    assert "SEARCH worker USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN" in plan


async def test_dead_borrowers_are_found_among_borrowers_not_among_loans(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("gates/loans.sql")["dead_borrowers"])
    found = [line for line in plan if "perdure_gate_loan" in line]
    assert found == [
        "SEARCH perdure_gate_loan USING COVERING INDEX perdure_gate_loan_worker",
        "SEARCH perdure_gate_loan USING COVERING INDEX perdure_gate_loan_worker (worker_id>?)",
    ]


async def test_a_budget_is_read_from_sums_and_from_what_is_not_in_them(sqlite: SqliteStore) -> None:
    """Of the spends themselves only those up to the first full minute of the window, new ones, and estimates."""
    plan = await plan_of(sqlite, sqlite._database.statements("gates/spends.sql")["totals"])
    assert [line for line in plan if line.startswith("SEARCH")] == [
        "SEARCH spend USING INDEX perdure_spend_name (name=? AND at>? AND at<?)",
        "SEARCH minute USING PRIMARY KEY (name=? AND span=? AND at>? AND at<?)",
        "SEARCH hour USING PRIMARY KEY (name=? AND span=? AND at>? AND at<?)",
        "SEARCH day USING PRIMARY KEY (name=? AND span=? AND at>?)",
        "SEARCH spend USING INDEX perdure_spend_unsummed (name=? AND at>?)",
        "SEARCH spend USING INDEX perdure_spend_changed (name=? AND summed_at>?)",
        "SEARCH spend USING INDEX perdure_spend_estimate (name=?)",
        "SEARCH lease USING PRIMARY KEY (job_id=?)",
    ]


@pytest.mark.parametrize("name", ["drop_ended_estimates", "void_ended_estimates"])
async def test_estimates_that_have_ended_are_found_among_estimates(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("gates/gates.sql")[name])
    assert "SCAN spend USING INDEX perdure_spend_estimate" in plan
    assert "SEARCH lease USING PRIMARY KEY (job_id=?)" in plan


@pytest.mark.parametrize("name", ["add_up", "forget_sums"])
async def test_sums_are_kept_without_a_walk_through_spends_or_sums(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("gates/spend_sums.sql")[name])
    assert [line for line in plan if re.match(r"SCAN (perdure_)?(spend|sum)", line)] == []


async def test_prune_finds_the_oldest_by_index(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("fleet/upkeep.sql")["old"])
    assert any(
        "COVERING INDEX perdure_finished_standing (state=? AND queue=? AND finished_at<?)" in line for line in plan
    )


@pytest.mark.parametrize("ours", ["", "ours"])
@pytest.mark.parametrize(("which", "bounds"), [("due", "next_at>? AND next_at<?"), ("coming", "next_at>?")])
async def test_due_schedules_are_found_by_their_times(sqlite: SqliteStore, which: str, bounds: str, ours: str) -> None:
    """Ten thousand that are not due cost nothing; the same goes for the time of the next one."""
    statements = sqlite._database.statements("schedules/schedules.sql")
    plan = await plan_of(sqlite, " ".join(statements.get(name, "") for name in ("view", which, ours, "earliest")))
    assert f"SEARCH perdure_schedule USING INDEX perdure_schedule_next ({bounds})" in plan
    assert not any("ORDER BY" in line for line in plan)


async def test_a_schedule_is_found_by_name(sqlite: SqliteStore) -> None:
    statements = sqlite._database.statements("schedules/schedules.sql")
    plan = await plan_of(sqlite, f"{statements['view']} {statements['named']}")
    assert "SEARCH perdure_schedule USING PRIMARY KEY (name=?)" in plan


async def test_the_last_return_is_one_seek(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("fleet/upkeep.sql")["last_return"])
    assert plan == ["SEARCH perdure_parked USING COVERING INDEX perdure_parked_return (queue=?)"]


@pytest.mark.parametrize("state", sorted(FINAL - {JobState.SUCCEEDED}))
async def test_list_of_the_dead_or_cancelled_does_not_wade_through_success(
    sqlite: SqliteStore, state: JobState
) -> None:
    [selection] = Selector(sqlite._database).select(JobFilter(states=frozenset({state})))
    plan = await plan_of(sqlite, f"SELECT place.job_id {selection.newest_first}")
    assert any(f"INDEX perdure_finished_{state}" in line for line in plan)
    assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize(
    "which",
    [
        JobFilter(states="succeeded"),
        JobFilter(states=FINAL),
        JobFilter(kind="k", tag="t", error="e", where=Condition("args", ("a",), "=", "word")),
        JobFilter(states="dead", where=Condition("error", (), "~", "e")),
        JobFilter(states="dead", fingerprint="f"),
        JobFilter(queue="q", created_after=datetime(2026, 1, 1, tzinfo=UTC), states=("retrying", "cancelled")),
    ],
)
async def test_a_stretch_of_a_search_is_read_along_the_ids(sqlite: SqliteStore, which: JobFilter) -> None:
    """Between two ids, nothing sorted: its cost is that of the stretch, whatever the database holds."""
    for selection in Selector(sqlite._database).select(which, also={"before": "f", "floor": "0"}):
        if selection.place != "ready":  # of which a short line is sorted, and a long one found along the ids
            walked = selection.newest_first.replace(" place.state IN (SELECT", " +place.state IN (SELECT")
            plan = await plan_of(sqlite, f"SELECT place.job_id {walked}")
            assert not any("TEMP B-TREE" in line or re.match("SCAN (place|job|perdure)", line) for line in plan), plan
            assert any("job_id>? AND job_id<?" in line for line in plan), plan
        walk = await plan_of(sqlite, selection.walk) if selection.walk else []
        assert not any("TEMP B-TREE" in line or line.startswith("SCAN") for line in walk), walk


async def test_groups_of_failures_are_found_by_seeks(sqlite: SqliteStore) -> None:
    statements = sqlite._database.statements("operate/views/failure_groups.sql")
    for name in ("count_dead", "hours", "some_groups", "print_dead", "print_attempts", "unprinted"):
        plan = await plan_of(sqlite, statements[name])
        walks = [line for line in plan if line.startswith("SCAN") and not HARMLESS.match(line)]
        assert [line for line in walks if "perdure_finished_unprinted" not in line and line != "SCAN seen"] == []
    [*plan] = await plan_of(sqlite, statements["groups"])
    assert any("COVERING INDEX perdure_finished_fingerprint (fingerprint>?)" in line for line in plan), plan
    for name in ("failed_alike", "died_alike"):
        plan = await plan_of(sqlite, sqlite._database.statements("operate/views/counting.sql")[name])
        assert [line.split(" (")[0].split(" USING ")[1] for line in plan if "SEARCH" in line] in (
            ["COVERING INDEX perdure_attempt_fingerprint"],
            ["COVERING INDEX perdure_finished_fingerprint"],
        )
        assert not any("TEMP B-TREE FOR ORDER BY" in line for line in plan)


@pytest.mark.parametrize("state", sorted(JobState))
async def test_job_is_found_by_id_without_a_walk(sqlite: SqliteStore, state: JobState) -> None:
    which = JobFilter(ids=(), states=frozenset({state}))
    for selection in Selector(sqlite._database).select(which):
        plan = await plan_of(sqlite, f"SELECT place.job_id {selection.newest_first}")
        assert [line for line in plan if line.startswith("SCAN") and "json_each" not in line] == []


async def test_counting_never_walks_through_all_rows(sqlite: SqliteStore) -> None:
    """Each pair of state and queue is one seek, and counting stops at the cap."""
    statements = sqlite._database.statements("operate/views/insight.sql")
    for name, table in (("count_parked", "parked"), ("count_finished", "finished")):
        plan = await plan_of(sqlite, statements[name])
        walks = [line for line in plan if line.startswith("SCAN") and table in line]
        assert all(f"COVERING INDEX perdure_{table}_standing" in line for line in walks)


@pytest.mark.parametrize("state", sorted(JobState))
@pytest.mark.parametrize(
    "which",
    [
        JobFilter(),
        JobFilter(queue="q"),
        JobFilter(kind="k", tag="t", marked=False, error="e"),
    ],
    ids=["all", "queue", "kind"],
)
async def test_each_spot_is_counted_along_its_index_up_to_the_cap(
    sqlite: SqliteStore, state: JobState, which: JobFilter
) -> None:
    """The jobs of a queue state are one stretch of an index; what else is asked of each is looked up by its key."""
    await job_in(state, sqlite, queue="q")
    queue_states, which = QueueStates(sqlite._database), replace(which, states=frozenset({state}))
    [queue_state] = await sqlite._database.read(lambda transaction: queue_states.of(transaction, which))
    residue = Selector(sqlite._database).residue(which, queue_state.place, state)
    columns = residue.condition or "1"
    plan = await plan_of(sqlite, queue_states.looked_at(queue_state, columns, with_job=residue.with_job))
    walks = {line for line in plan if line.startswith("SCAN") and line.split()[1] not in {"tag", "known"}}
    assert walks <= ({"SCAN place"} if state is JobState.RUNNING else set()), plan
    assert not any("TEMP B-TREE" in line for line in plan)


async def test_dead_letters_of_a_kind_are_counted_without_their_jobs(sqlite: SqliteStore) -> None:
    """By the groups of its failures: the dead letters of other kinds are not read, nor is any job."""
    queue_states, which = QueueStates(sqlite._database), JobFilter(kind="rare", states=frozenset({JobState.DEAD}))
    of_groups, _ = queue_states.dead_of_kind(which)
    residue = Selector(sqlite._database).residue(which, of_groups.place, JobState.DEAD)
    assert not residue.with_job
    plan = await plan_of(sqlite, queue_states.looked_at(of_groups, "place.queue", with_job=residue.with_job))
    assert "SEARCH place USING INDEX perdure_finished_fingerprint (fingerprint=?)" in plan
    assert not any("job" in line.split()[1] for line in plan)


@pytest.mark.parametrize("name", ["queues_of_ready", "queues_of_parked", "queues_of_finished", "marked"])
async def test_queues_and_marks_are_found_by_seeks(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("operate/views/counting.sql")[name])
    assert [
        line for line in plan if line.startswith("SCAN") and "each_queue" not in line and "CONSTANT" not in line
    ] == []
    assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize(
    ("which", "index", "sorts"),
    [
        (AuditFilter(), "audit_at (at>? AND at<?)", False),
        (AuditFilter(actor="system"), "audit_at (at>? AND at<?)", False),
        (AuditFilter(actor="ada"), "audit_actor (actor=? AND at>? AND at<?)", False),
        (AuditFilter(action="read"), "audit_action (action=? AND at>? AND at<?)", False),
        (AuditFilter(actor="system", action="read"), "audit_action (action=? AND at>? AND at<?)", False),
        (AuditFilter(job_id=new_job_id(), actor="ada"), "audit_job (job_id=?)", True),
    ],
    ids=["all", "system", "actor", "action", "both", "job"],
)
async def test_the_audit_trail_is_read_along_an_index(
    sqlite: SqliteStore, which: AuditFilter, index: str, sorts: bool
) -> None:
    """Only the entries of one job, which are few, are sorted."""
    plan = await plan_of(sqlite, trail_query(sqlite._database.statements("operate/commands/audit.sql"), which)[0])
    assert plan[0] == f"SEARCH entry USING INDEX perdure_{index}"
    assert any("TEMP B-TREE" in line for line in plan) is sorts


async def test_e10_jobs_that_finished_in_a_time_are_one_stretch_of_an_index(
    sqlite: SqliteStore, clock: ManualClock
) -> None:
    queue_states = QueueStates(sqlite._database)
    await job_in(JobState.DEAD, sqlite)
    which = JobFilter(finished_after=clock.now(), finished_before=clock.now() + timedelta(hours=1))
    [queue_state] = await sqlite._database.read(lambda transaction: queue_states.of(transaction, which))
    plan = await plan_of(sqlite, f"SELECT place.job_id {queue_state.source} WHERE {queue_state.where} LIMIT :limit")
    stretch = "(state=? AND queue=? AND finished_at>? AND finished_at<?)"
    assert plan == [f"SEARCH place USING COVERING INDEX perdure_finished_standing {stretch}"]


@pytest.mark.parametrize(
    ("name", "seeks"),
    [
        ("note_flush", set()),
        ("add", set()),
        ("minutes", {"SEARCH perdure_statistic_part USING PRIMARY KEY (at<?)"}),
        ("roll_up", {"SEARCH part USING PRIMARY KEY (at<?)"}),
        ("take_out", {"SEARCH perdure_statistic_part USING PRIMARY KEY (at<?)"}),
        ("forget", {"SEARCH old USING PRIMARY KEY (span=? AND facet=? AND at<?)"}),
        (
            "statistics",
            {
                "SEARCH perdure_statistic USING PRIMARY KEY (span=? AND facet=? AND at>? AND at<?)",
                "SEARCH perdure_statistic_part USING PRIMARY KEY (at>? AND at<?)",
            },
        ),
    ],
)
async def test_statistics_are_read_in_the_stretch_that_is_asked_for(
    sqlite: SqliteStore, name: str, seeks: set[str]
) -> None:
    """A page of an hour costs the same after 90 days. What a query sums up may be sorted."""
    plan = await plan_of(sqlite, sqlite._database.statements("operate/views/statistics.sql", WORDS)[name])
    assert seeks <= set(plan), plan
    assert not [line for line in plan if line.startswith("SCAN perdure_")], plan
