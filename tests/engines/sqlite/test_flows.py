"""Flows in this engine: nothing is left behind, and jobs without kin cost nothing."""

from __future__ import annotations

from typing import Any

import apsw
import pytest
from msgspec import json
from tests.support.builders.families import CHILDREN, as_parent, awaiting, offspring, spawn, start_parent
from tests.support.builders.jobs import (
    DAY,
    HOUR,
    MINUTE,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    only,
    show,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits, Progress, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.flows.plan import Planned, link, link_key
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.engines.sqlite.claims.acknowledgements import AcknowledgementPart
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.store import SqliteStore
from perdure.storage.records import JobFilter, Keep

LASTING = {f"perdure_{name}" for name in ("audit", "counter", "event", "migration", "revoked", "worker")}


class Recorder:
    """A transaction that counts its statements."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.statements = 0

    def run(self, *given: Any) -> Any:
        self.statements += 1
        return self._transaction.run(*given)

    def change(self, *given: Any) -> Any:
        self.statements += 1
        return self._transaction.change(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)


async def statements_of(store: SqliteStore, moves: list[Transition]) -> int:
    """How many statements it takes to acknowledge these."""
    part = store.acknowledge.__self__  # type: ignore[attr-defined]  # a bound method
    assert isinstance(part, AcknowledgementPart)

    def work(transaction: Transaction) -> int:
        recorder: Any = Recorder(transaction)
        assert part.apply(recorder, moves).applied == len(moves)
        statements: int = recorder.statements
        return statements

    return await store._database.write(work)


def rows_of(path: str) -> dict[str, int]:
    """How many rows the tables hold, but for those that outlive jobs; empty ones are left out."""
    link = apsw.Connection(path)
    tables = {name for (name,) in link.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    ours = sorted(name for name in tables - LASTING if name.startswith("perdure_"))
    counted = {name: len(link.execute(f"SELECT 1 FROM {name}").fetchall()) for name in ours}
    link.close()
    return {name: rows for name, rows in counted.items() if rows}


def expecting(claim: Claim, event: str = "paid") -> Transition:
    return transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event=event), None)


async def test_an_end_without_kin_costs_no_statement_more(sqlite: SqliteStore) -> None:
    await sqlite.insert([a_job() for _ in range(50)])
    claims = await claim_some(sqlite, await employ(sqlite))
    assert await statements_of(sqlite, [transition.succeeded(claim, None, ()) for claim in claims]) == 2


async def test_ends_of_children_cost_a_fixed_number_of_statements(sqlite: SqliteStore) -> None:
    """However many end in one batch, of however many families; if some are settled, one more asks who waits."""
    for _ in range(5):
        await start_parent(sqlite, 20)
    claims = await claim_some(sqlite, await employ(sqlite), 100, CHILDREN)
    moves = [transition.succeeded(claim, None, ()) for claim in claims]
    assert await statements_of(sqlite, moves[:15]) == 4
    assert await statements_of(sqlite, moves[15:]) == 5


async def test_each_link_of_a_chain_costs_the_same_statements(sqlite: SqliteStore) -> None:
    """However many there were before it, and however many there are to come."""
    plan = Planned(kind="load", args="{}", queue=CHILDREN)
    documents = tuple(json.encode(plan).decode() for _ in range(200))
    chain = await start(sqlite, kind="chain", plan=documents)
    assert await sqlite.spawn(chain, link(chain.job_id, 0, plan, None, is_last=False))
    await apply(sqlite, awaiting(chain, link_key(0)))
    worker_id = await employ(sqlite, name="nurse")
    costs = set()
    for _ in range(150):
        claim = await claim_one(sqlite, worker_id, CHILDREN)
        costs.add(await statements_of(sqlite, [transition.succeeded(claim, "1", ())]))
    assert costs == {12}
    assert (await show(sqlite, chain.job_id)).cursor == "150"


async def test_saving_steps_wakes_no_worker(sqlite: SqliteStore, clock: ManualClock) -> None:
    claim = await start(sqlite)
    rung: list[bool] = []
    sqlite._database.listen(lambda: rung.append(True))
    step = StepRecord(key="fetch", kind=StepKind.CALL, state=StepState.DONE, begun_at=clock.now())
    assert await sqlite.save_steps([StepWrite(claim, step)]) == [True]
    assert rung == []
    await sqlite.insert([a_job(), a_job()])
    assert rung == [True]


async def test_nothing_is_left_of_a_tree_that_was_deleted(sqlite: SqliteStore, path: str, clock: ManualClock) -> None:
    parent, children = await start_parent(sqlite)
    step = StepRecord(key="split", kind=StepKind.CALL, state=StepState.DONE, begun_at=clock.now())
    await sqlite.save_steps([StepWrite(parent, step)])
    shown = Progress(current=1, total=3, note=None, at=clock.now())
    await sqlite.save_progress({parent.job_id: (parent, shown)})
    [claim, *_] = await claim_some(sqlite, await employ(sqlite), 2, CHILDREN)
    await spawn(sqlite, claim, *offspring(2))
    await apply(sqlite, expecting(claim))
    await apply(sqlite, as_parent(awaiting(parent)))
    assert set(rows_of(path)) >= {"perdure_step", "perdure_progress", "perdure_family", "perdure_child"}
    assert len(await sqlite.delete(JobFilter(), By("ops"), 100)) == 1 + len(children) + 2
    assert rows_of(path) == {}


@pytest.mark.parametrize("how", ["promote", "run_now", "cancel", "emit", "delete"])
async def test_a_waiter_goes_with_the_wait(sqlite: SqliteStore, path: str, clock: ManualClock, how: str) -> None:
    claim = await start(sqlite)
    await apply(sqlite, expecting(claim))
    assert rows_of(path)["perdure_waiter"] == 1
    if how == "promote":
        clock.move(HOUR)
        assert (await sqlite.promote(10)).total == 1
    elif how == "emit":
        assert (await sqlite.emit("paid", None, By("ops"))).woken == 1
    elif how == "cancel":
        await sqlite.cancel(only(claim.job_id), By("ops"), 10)
    else:
        await (sqlite.run_now if how == "run_now" else sqlite.delete)(only(claim.job_id), By("ops"), 10)
    assert "perdure_waiter" not in rows_of(path)


async def test_a_stale_waiter_wakes_no_job(sqlite: SqliteStore, path: str) -> None:
    """Should one be left, the job's own row says what it waits for."""
    claim = await start(sqlite)
    await apply(sqlite, expecting(claim, "shipped"))
    link = apsw.Connection(path)
    link.execute("INSERT INTO perdure_waiter (event, job_id) VALUES ('paid', ?)", (claim.job_id,))
    link.close()
    assert (await sqlite.emit("paid", None, By("ops"))).woken == 0
    assert (await show(sqlite, claim.job_id)).awaits == "event:shipped"
    assert (await sqlite.emit("shipped", None, By("ops"))).woken == 1


async def test_a_notice_without_a_receiver_is_deleted(sqlite: SqliteStore, path: str, clock: ManualClock) -> None:
    """A worker that died before it was told; one that was dead already gets no word at all."""
    dead, dying = await employ(sqlite), await employ(sqlite)
    for worker_id in (dead, dying):
        await enqueue(sqlite)
        await claim_one(sqlite, worker_id)
    await sqlite.retire(dead)
    await sqlite.delete(JobFilter(states=frozenset({JobState.RUNNING})), By("ops"), 10)
    await sqlite.retire(dying)
    link = apsw.Connection(path)
    assert link.execute("SELECT worker_id FROM perdure_revoked").fetchall() == [(dying,)]
    clock.move(DAY + MINUTE)
    await sqlite.prune(Keep(), 10)
    assert link.execute("SELECT worker_id FROM perdure_revoked").fetchall() == []
    link.close()
