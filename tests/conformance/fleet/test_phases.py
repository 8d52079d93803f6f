"""What a worker is about, who asked it to be quiet, and when the last orphan of a queue comes back (C1, C2)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_some,
    employ,
    start,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.domain.worker import Phase, WorkerView
from perdure.storage.port import Store

LEASE = timedelta(seconds=30)


async def view_of(store: Store, worker_id: WorkerId) -> WorkerView:
    [view] = [view for view in await store.workers() if view.id == worker_id]
    return view


async def test_a_worker_is_open_until_it_says_otherwise(store: Store) -> None:
    view = await view_of(store, await employ(store))
    assert (view.phase, view.quiet_at) == (Phase.OPEN, None)


@pytest.mark.parametrize("phase", list(Phase))
async def test_a_worker_shows_what_it_is_about(store: Store, phase: Phase) -> None:
    other = await employ(store, name="other")
    worker_id = await employ(store)
    await store.report(worker_id, phase)
    assert (await view_of(store, worker_id)).phase is phase
    assert (await view_of(store, other)).phase is Phase.OPEN


async def test_workers_declared_dead_are_returned_with_what_they_ran(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.report(worker_id, Phase.CLOSING)
    await store.quiet([worker_id], By("ops"), quiet=True)
    asked_at = clock.now()
    clock.move(HOUR)
    [buried] = await store.bury_silent(LEASE)
    assert (buried.id, buried.phase, buried.quiet_at, buried.running) == (worker_id, Phase.CLOSING, asked_at, 0)


async def test_the_jobs_of_each_worker_are_counted(store: Store) -> None:
    idle, busy, busier = [await employ(store) for _ in range(3)]
    await store.insert([a_job() for _ in range(5)])
    await claim_some(store, busy, 2)
    await claim_some(store, busier, 3)
    running = {view.id: view.running for view in await store.workers()}
    assert running == {idle: 0, busy: 2, busier: 3}


async def test_c1_a_worker_can_be_asked_to_be_quiet_and_to_go_on(store: Store, clock: ManualClock) -> None:
    worker_id, other = await employ(store), await employ(store)
    assert not await store.wants_quiet(worker_id)
    clock.move(MINUTE)
    assert await store.quiet([worker_id], By("ops"), quiet=True) == [worker_id]
    assert await store.wants_quiet(worker_id)
    assert not await store.wants_quiet(other)
    assert (await view_of(store, worker_id)).quiet_at == clock.now()
    assert await store.quiet([worker_id], By("ops"), quiet=False) == [worker_id]
    assert not await store.wants_quiet(worker_id)
    assert (await view_of(store, worker_id)).quiet_at is None


async def test_asked_twice_a_worker_has_been_asked_since_the_first_time(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    first = clock.now()
    await store.quiet([worker_id], By("ops"), quiet=True)
    clock.move(MINUTE)
    assert await store.quiet([worker_id], By("ops"), quiet=True) == [worker_id]
    assert (await view_of(store, worker_id)).quiet_at == first


async def test_only_the_living_are_asked(store: Store) -> None:
    living, dead = await employ(store), await employ(store)
    await store.retire(dead)
    assert await store.quiet([dead, living, WorkerId(living + 1_000)], By("ops"), quiet=True) == [living]
    assert (await view_of(store, dead)).quiet_at is None
    assert not await store.wants_quiet(WorkerId(living + 1_000))
    assert await store.quiet([], By("ops"), quiet=True) == []


async def test_who_asked_for_quiet_is_written_to_the_audit_trail(store: Store, engine_url: str) -> None:
    worker_id = await employ(store)
    await store.quiet([worker_id], By("ada"), quiet=True)
    await store.quiet([worker_id], By("bob"), quiet=False)
    await store.quiet([WorkerId(worker_id + 1_000)], By("eve"), quiet=True)
    lines = query(engine_url, "SELECT actor, action, job_id FROM {audit} ORDER BY id")
    assert [(actor, action, about or None) for actor, action, about in lines] == [
        ("ada", "quiet", None),
        ("bob", "loud", None),
    ]


async def test_a_phase_and_a_wish_change_nothing_for_claims(store: Store) -> None:
    """Both are words: the worker itself heeds them, and what it holds stays its own."""
    worker_id = await employ(store)
    await store.report(worker_id, Phase.QUIET)
    await store.quiet([worker_id], By("ops"), quiet=True)
    await store.insert([a_job()])
    [claim] = await claim_some(store, worker_id)
    await apply(store, transition.succeeded(claim, None, ()))
    assert await store.beat(worker_id)


async def test_c2_the_last_return_is_the_latest_of_the_orphans_that_come_back_one_by_one(
    store: Store, clock: ManualClock
) -> None:
    assert await store.last_return("default") is None
    await store.insert([a_job() for _ in range(3)])
    claims = await claim_some(store, await employ(store))
    waits = [2 * SECOND, 30 * SECOND, 7 * SECOND]
    for claim, wait in zip(claims, waits, strict=True):
        await apply(store, transition.returning(transition.crashed(claim, A_FAILURE), wait))
    assert await store.last_return("default") == clock.now() + 30 * SECOND
    assert await store.last_return("mail") is None
    clock.move(30 * SECOND)
    assert (await store.promote(10)).total == 3
    assert await store.last_return("default") is None


async def test_c2_jobs_parked_for_another_reason_are_no_orphans(store: Store) -> None:
    failed = await start(store)
    await apply(store, transition.retrying(failed, Reason.FAILED, A_FAILURE, HOUR))
    snoozed = await start(store)
    await apply(store, transition.waiting(snoozed, Reason.SNOOZED, HOUR))
    at_once = await start(store)
    await apply(store, transition.crashed(at_once, A_FAILURE))
    await store.insert([a_job(delay=HOUR)])
    assert await store.last_return("default") is None
