"""The plans of the statements: hot ones seek, whatever the database holds."""

from __future__ import annotations

import re
from typing import Final

import pytest

from perdure.domain.states import FINAL, JobState
from perdure.engines.sqlite.selection import Selector
from perdure.engines.sqlite.store import SqliteStore
from perdure.storage.records import JobFilter

HOT: Final = {
    "intake.sql": (
        "add_job add_ready add_parked add_alike_jobs add_alike_ready add_jobs add_all_ready add_all_parked placeless "
        "take_key key_holder drop_key pass_key_on stored waiting_place leave_ready replace_job postpone leave_parked"
    ),
    "claims.sql": "pick spend_token hold take_out",
    "acknowledgement.sql": "succeed_plainly succeed end park line_up note_turns record_attempts stale let_go",
    "keys.sql": "drop_keys take_keys denied",
    "workers.sql": "beat retire cancel_requests",
    "upkeep.sql": (
        "next_due due ready_from_parked note_turns leave_parked hold_back old forget_attempts forget_keys "
        "forget_finished forget_jobs"
    ),
    "commands.sql": (
        "ready_from_finished leave_finished cancel_ready leave_ready cancel_parked leave_parked ask_to_stop"
    ),
    "insight.sql": "attempts",
    "signals.sql": "anything",
}
HOT_STATEMENTS: Final = [(file, name) for file, names in HOT.items() for name in names.split()]
# What may be walked through: the batch itself, results of a subquery, and the first row of a line or of an index.
HARMLESS: Final = re.compile(
    r"SCAN (row|json_each|\(subquery-\d+\)|held|waiting|perdure_ready|CONSTANT ROW)(?!\w)"
    r"|SCAN perdure_lease USING INDEX perdure_lease_cancel"
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
    plan = await plan_of(sqlite, sqlite._database.statements("claims.sql")["pick"])
    assert "SEARCH ready USING PRIMARY KEY (queue=?)" in plan
    assert "SEARCH job USING PRIMARY KEY (id=?)" in plan


@pytest.mark.parametrize("name", ["hold", "take_out"])
async def test_claim_moves_one_stretch_of_its_queue(sqlite: SqliteStore, name: str) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("claims.sql")[name])
    assert plan == ["SEARCH perdure_ready USING PRIMARY KEY (queue=? AND (priority,turn,job_id)<(?,?,?))"]


async def test_promote_finds_what_is_due_by_index(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("upkeep.sql")["due"])
    assert any("USING INDEX perdure_parked_due" in line for line in plan)


async def test_prune_finds_the_oldest_by_index(sqlite: SqliteStore) -> None:
    plan = await plan_of(sqlite, sqlite._database.statements("upkeep.sql")["old"])
    assert any(
        "COVERING INDEX perdure_finished_standing (state=? AND queue=? AND finished_at<?)" in line for line in plan
    )


@pytest.mark.parametrize("state", sorted(FINAL - {JobState.SUCCEEDED}))
async def test_list_of_the_dead_or_cancelled_does_not_wade_through_success(
    sqlite: SqliteStore, state: JobState
) -> None:
    [selection] = Selector(sqlite._database).select(JobFilter(states=frozenset({state})))
    plan = await plan_of(sqlite, f"SELECT place.job_id {selection.newest_first}")
    assert any(f"INDEX perdure_finished_{state}" in line for line in plan)
    assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize("state", sorted(JobState))
async def test_job_is_found_by_id_without_a_walk(sqlite: SqliteStore, state: JobState) -> None:
    which = JobFilter(ids=(), states=frozenset({state}))
    for selection in Selector(sqlite._database).select(which):
        plan = await plan_of(sqlite, f"SELECT place.job_id {selection.newest_first}")
        assert [line for line in plan if line.startswith("SCAN") and "json_each" not in line] == []


async def test_counting_never_walks_through_all_rows(sqlite: SqliteStore) -> None:
    """Each pair of state and queue is one seek, and counting stops at the cap."""
    statements = sqlite._database.statements("insight.sql")
    for name, table in (("count_parked", "parked"), ("count_finished", "finished")):
        plan = await plan_of(sqlite, statements[name])
        walks = [line for line in plan if line.startswith("SCAN") and table in line]
        assert all(f"COVERING INDEX perdure_{table}_standing" in line for line in walks)
