"""A clock that jumps costs no worker its lease."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import claim_one, employ, enqueue, state_of

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.events import ClockJumped, Emitter, Event
from perdure.storage.port import Store
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings

LEASE = timedelta(seconds=30)
SWEEP = timedelta(seconds=5)
HOUR = timedelta(hours=1)


def jump(clock: ManualClock, by: timedelta) -> None:
    """The date changes, the time that passes does not."""
    clock._now += by


async def test_after_a_jump_forward_no_worker_that_beats_is_declared_dead(store: Store, clock: ManualClock) -> None:
    heard: list[Event] = []
    emitter = Emitter()
    emitter.subscribe(heard.append)
    rescuer = Rescuer(
        store, emitter, clock, RescueSettings(lease=LEASE, sweep=SWEEP), RescueOwner(on_ready=lambda: None)
    )
    job_id = await enqueue(store)
    worker = await employ(store)
    await claim_one(store, worker)
    await rescuer.tick()
    jump(clock, HOUR)
    for second in range(60):
        clock.move(timedelta(seconds=1))
        if second % 10 == 9:
            assert await store.beat(worker)
        await rescuer.tick()
    assert await state_of(store, job_id) is JobState.RUNNING
    assert [round(event.seconds) for event in heard if isinstance(event, ClockJumped)] == [3600]


async def test_after_a_jump_the_dead_are_still_found(store: Store, clock: ManualClock) -> None:
    rescuer = Rescuer(
        store, Emitter(), clock, RescueSettings(lease=LEASE, sweep=SWEEP), RescueOwner(on_ready=lambda: None)
    )
    job_id = await enqueue(store)
    await claim_one(store, await employ(store))
    await rescuer.tick()
    jump(clock, -HOUR)
    for _ in range(8):
        clock.move(timedelta(seconds=10))
        await rescuer.tick()
    assert await state_of(store, job_id) is JobState.READY


async def test_who_never_saw_the_clock_ahead_finds_the_dead_in_time(store: Store, clock: ManualClock) -> None:
    """G4: a lease that was renewed before the clock was put back lasts no longer for that."""
    jump(clock, 1000 * HOUR)
    job_id = await enqueue(store)
    await claim_one(store, await employ(store))
    jump(clock, -1000 * HOUR)
    rescuer = Rescuer(
        store, Emitter(), clock, RescueSettings(lease=LEASE, sweep=SWEEP), RescueOwner(on_ready=lambda: None)
    )
    await rescuer.tick()
    clock.move(LEASE)
    await rescuer.tick()
    assert await state_of(store, job_id) is JobState.RUNNING
    clock.move(SWEEP)
    await rescuer.tick()
    assert await state_of(store, job_id) is JobState.READY


async def test_after_the_clock_was_put_back_no_worker_that_beats_is_declared_dead(
    store: Store, clock: ManualClock
) -> None:
    jump(clock, HOUR)
    job_id = await enqueue(store)
    worker = await employ(store)
    await claim_one(store, worker)
    jump(clock, -HOUR)
    rescuer = Rescuer(
        store, Emitter(), clock, RescueSettings(lease=LEASE, sweep=SWEEP), RescueOwner(on_ready=lambda: None)
    )
    for _ in range(8):
        await rescuer.tick()
        clock.move(timedelta(seconds=10))
        assert await store.beat(worker)
    assert await state_of(store, job_id) is JobState.RUNNING
