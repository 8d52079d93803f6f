"""What a worker writes to the audit trail, where its settings say so (A14)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import HOUR, MINUTE, enqueue, show, start
from tests.support.builders.trail import cancellations_by_system
from tests.support.databases.behind import query
from tests.support.waiting import PATIENCE, until
from tests.support.working import at_work, seen

from perdure import App, Retry, SettingsError, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited, By
from perdure.events import Emitter
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, JobFilter, Wanted
from perdure.testing import Sandbox
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings


async def actions(store: Store) -> list[tuple[str, Any]]:
    entries = await store.audit(AuditFilter(actor="system"), 100)
    return [(entry.action, entry.details["attempts"]) for entry in reversed(entries)]


@pytest.mark.parametrize(
    ("audit", "written"),
    [
        ((), []),
        ("retry", [("job_retry", 1), ("job_retry", 2)]),
        (("retry", "death"), [("job_retry", 1), ("job_retry", 2), ("job_death", 3)]),
    ],
    ids=["off", "retries", "deaths too"],
)
async def test_a14_each_retry_is_in_the_trail_if_that_is_switched_on(
    audit: Any, written: list[tuple[str, int]], tmp_path: Any
) -> None:
    """And the job takes the same way if it is not."""
    app = App(f"sqlite:///{tmp_path / 'unused.db'}", worker=WorkerSettings(audit=audit))

    @app.job(retry=Retry(attempts=3))
    async def fail() -> None:
        raise ValueError("never mind")

    async with Sandbox(app) as box:
        handle = await fail.enqueue()
        await box.drain(travel=True)
        view = await handle.view()
        assert (view.state, view.failures) == ("dead", 3)
        store = await app.store()
        assert await actions(store) == written
        for entry in await store.audit(AuditFilter(action="job_retry"), 1):
            assert entry.details == {
                "old_status": "running",
                "new_status": "retrying",
                "attempts": 2,
                "max_attempts": 3,
            }


@pytest.mark.parametrize("audit", [{Audited.RESCUE}, frozenset()])
async def test_a_rescue_is_in_the_trail_if_that_is_switched_on(
    store: Store, clock: ManualClock, audit: frozenset[Audited]
) -> None:
    claim = await start(store)
    rescuer = Rescuer(
        store,
        Emitter(),
        clock,
        RescueSettings(lease=MINUTE, sweep=timedelta(seconds=5), audit=audit),
        RescueOwner(on_ready=lambda: None),
    )
    clock.move(HOUR)
    assert (await rescuer.tick()).ready == 1
    entries = await store.audit(AuditFilter(job_id=claim.job_id), 10)
    assert [(entry.actor, entry.action) for entry in entries] == ([("system", "job_rescue")] if audit else [])


async def test_a14_a_job_that_is_cancelled_on_its_way_back_from_quarantine_is_in_the_trail(
    real_time_store: Store, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two have one crash left: one is let in, the other goes back, and an operator has cancelled it by then."""
    app, go = App("sqlite:///unused.db"), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        await go.wait()

    genuine, back = real_time_store.acknowledge, list[JobId]()

    async def late(transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        if not back:
            back.extend(move.claim.job_id for move in transitions)
            await real_time_store.cancel(JobFilter(ids=tuple(back)), By("ada", "not needed"), 10)
        return await genuine(transitions, audit)

    monkeypatch.setattr(real_time_store, "acknowledge", late)
    for _ in range(2):
        await enqueue(real_time_store)
    query(engine_url, "UPDATE {ready} SET crashes = 2")
    async with at_work(real_time_store, app, audit="cancel"):
        await until(lambda: back)
        view = await seen(real_time_store, back[0])
        go.set()
    assert (len(back), view.state) == (1, "cancelled")
    assert await cancellations_by_system(real_time_store) == back


async def test_a14_a_job_that_is_cancelled_while_its_claim_is_in_doubt_is_in_the_trail(
    real_time_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker closes before it has heard what it claimed; a job that an operator cancelled meanwhile ends there."""
    app, taken = App("sqlite:///unused.db"), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        raise AssertionError(name)

    genuine, job_id = real_time_store.claim, await enqueue(real_time_store)

    async def claim_without_an_answer(worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        await genuine(worker_id, wanted)
        await real_time_store.cancel(JobFilter(ids=(job_id,)), By("ada", "not needed"), 1)
        taken.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(real_time_store, "claim", claim_without_an_answer)
    async with at_work(real_time_store, app, audit="cancel"):
        await asyncio.wait_for(taken.wait(), PATIENCE)
    assert (await show(real_time_store, job_id)).state == "cancelled"
    assert await cancellations_by_system(real_time_store) == [job_id]


def test_what_is_audited_is_given_by_words() -> None:
    assert WorkerSettings(audit=("retry", "cancel")).audit == {Audited.RETRY, Audited.CANCEL}
    assert WorkerSettings(audit="death").audit == {Audited.DEATH}
    assert WorkerSettings().audit == frozenset()


@pytest.mark.parametrize("audit", ["retries", ("retry", "x"), 3, [["retry"]]])
def test_an_unknown_word_is_refused_by_name(audit: Any) -> None:
    with pytest.raises(SettingsError, match=r"worker\.audit must be among retry, rescue, death, cancel, got"):
        WorkerSettings(audit=audit)
