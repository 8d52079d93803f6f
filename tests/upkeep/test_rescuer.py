"""When the rescuer walks through the leases: whenever a dead worker may hold any, and hardly ever otherwise."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from tests.support.builders.jobs import SECOND, claim_one, claim_some, employ, enqueue, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Orphan
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import Keep
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings

LEASE = timedelta(seconds=30)
SWEEP = timedelta(seconds=5)


class Walks:
    """Counts the walks through a store's leases."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        walk = store.orphans

        async def orphans(limit: int, after: JobId | None = None) -> list[Orphan]:
            self.number += after is None
            return await walk(limit, after)

        monkeypatch.setattr(store, "orphans", orphans)


def rescuer_of(store: Store, clock: ManualClock) -> Rescuer:
    return Rescuer(
        store, Emitter(), clock, RescueSettings(lease=LEASE, sweep=SWEEP), RescueOwner(on_ready=lambda: None)
    )


async def sweep(rescuer: Rescuer, clock: ManualClock, times: int = 1) -> None:
    for _ in range(times):
        clock.move(SWEEP)
        await rescuer.tick()


async def test_leases_are_not_scanned_while_no_worker_dies(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = Walks(store, monkeypatch)
    rescuer = rescuer_of(store, clock)
    await store.retire(await employ(store))
    worker = await employ(store)
    await enqueue(store)
    await claim_one(store, worker)
    await sweep(rescuer, clock)
    assert walks.number == 1
    for _ in range(20):
        await store.beat(worker)
        await sweep(rescuer, clock)
    assert walks.number == 1


async def test_g4_who_comes_and_dies_between_two_sweeps_is_found(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = Walks(store, monkeypatch)
    rescuer = rescuer_of(store, clock)
    await sweep(rescuer, clock, 3)
    short_lived = await employ(store)
    job_id = await enqueue(store)
    await claim_one(store, short_lived)
    await store.retire(short_lived)
    await sweep(rescuer, clock)
    assert await state_of(store, job_id) is JobState.READY
    await sweep(rescuer, clock, 5)
    assert walks.number == 3, "the first, the one that found it, and the one that found nothing more"


async def test_g4_who_dies_a_second_time_in_a_database_put_back_is_found(
    engine_url: str, store: Store, clock: ManualClock
) -> None:
    """In the copy that was put back, a worker lives and holds jobs whom the rescuer has known to be dead."""
    rescuer = rescuer_of(store, clock)
    worker = await employ(store)
    await store.retire(worker)
    await sweep(rescuer, clock)
    query(engine_url, "UPDATE {worker} SET dead_at = NULL")
    assert await store.beat(worker)
    job_id = await enqueue(store)
    await claim_one(store, worker)
    await sweep(rescuer, clock, 8)
    assert await state_of(store, job_id) is JobState.READY


async def test_g4_jobs_that_the_long_dead_hold_again_after_an_outage_are_found(
    engine_url: str, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What took over is a copy in which the worker was dead already, and its jobs not yet rescued."""
    rescuer = rescuer_of(store, clock)
    dead, living = await employ(store), await employ(store)
    await store.retire(dead)
    await sweep(rescuer, clock)
    with monkeypatch.context() as away:

        async def nobody(*_: object) -> None:
            raise StoreUnavailable("the server is gone")

        away.setattr(store, "bury_gone", nobody)
        with pytest.raises(StoreUnavailable):
            await sweep(rescuer, clock)
    job_id = await enqueue(store)
    await claim_one(store, living)
    query(engine_url, f"UPDATE {{lease}} SET worker_id = {dead}")
    await sweep(rescuer, clock, 2)
    assert await state_of(store, job_id) is JobState.READY


@pytest.mark.parametrize("seconds", range(60, 66))
async def test_g3_no_worker_is_declared_dead_for_beats_missed_on_a_read_only_database(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """A standby answers questions, and takes over at last; then all workers have a sweep's time to be heard again."""
    rescuer = rescuer_of(store, clock)
    worker = await employ(store)
    await sweep(rescuer, clock)
    with monkeypatch.context() as read_only:

        async def refuse(*_: object) -> None:
            raise StoreRefused("the server is read-only")

        read_only.setattr(store, "bury_silent", refuse)
        for _ in range(seconds):
            clock.move(SECOND)
            with suppress(StoreRefused):
                await rescuer.tick()
    for _ in range(4):
        clock.move(SECOND)
        await rescuer.tick()
    assert await store.beat(worker), "a beat is tried again every second"


async def test_g4_a_job_that_could_not_be_rescued_is_looked_for_again(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescuer = rescuer_of(store, clock)
    await sweep(rescuer, clock)
    worker = await employ(store)
    job_id = await enqueue(store)
    await claim_one(store, worker)
    await store.retire(worker)
    with monkeypatch.context() as broken:

        async def refuse(_: object) -> None:
            raise ValueError("not now")

        broken.setattr(store, "acknowledge", refuse)
        await sweep(rescuer, clock, 3)
    assert await state_of(store, job_id) is JobState.RUNNING
    await sweep(rescuer, clock)
    assert await state_of(store, job_id) is JobState.READY


async def test_workers_that_are_forgotten_cause_no_walk(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = Walks(store, monkeypatch)
    rescuer = rescuer_of(store, clock)
    gone = await employ(store)
    await store.retire(gone)
    clock.move(timedelta(days=2))
    await sweep(rescuer, clock)
    assert await store.dead_workers() == {gone}
    await store.prune(Keep(), 100)
    assert await store.dead_workers() == frozenset()
    await sweep(rescuer, clock, 3)
    assert walks.number == 1


async def test_the_jobs_of_a_worker_missing_from_the_register_come_back_within_ten_minutes(
    engine_url: str, store: Store, clock: ManualClock
) -> None:
    rescuer = rescuer_of(store, clock)
    await sweep(rescuer, clock)
    worker = await employ(store)
    job_id = await enqueue(store)
    await claim_some(store, worker)
    query(engine_url, "DELETE FROM {worker}")
    await sweep(rescuer, clock, 60)
    assert await state_of(store, job_id) is JobState.RUNNING
    await sweep(rescuer, clock, 60)
    assert await state_of(store, job_id) is JobState.READY
