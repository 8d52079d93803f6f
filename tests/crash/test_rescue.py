"""G4 and F2: the jobs of the dead come back in time, and a job that kills its workers ends."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crash.conftest import House, Tell
from tests.crash.harness.checker import check
from tests.crash.harness.contents import read_contents, unfinished
from tests.crash.harness.fleet import Fleet, Member
from tests.crash.harness.leases import LeaseWatch
from tests.support.builders.jobs import a_worker, claim_one, enqueue, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreUnavailable
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings
from perdure.worker.settings import WorkerSettings

ON_THIS_HOST = 2.0  # seconds promised
MARGIN = 2.0  # for a busy machine
TICK = timedelta(seconds=1.1)  # the longest time between two ticks of the rescuer


def test_g4_a_killed_worker_s_jobs_run_again_within_two_seconds(house: House, tmp_path: Path, tell: Tell) -> None:
    """With default settings, on a host where another worker runs."""
    with Fleet(house.url, tmp_path) as fleet:
        a = fleet.worker("a")
        jobs = [fleet.enqueue_hold(number) for number in range(5)]
        for job in jobs:
            fleet.started(job, a)
        b = fleet.worker("b")
        fleet.opened(b)
        time.sleep(random.uniform(0.0, 1.0))  # noqa: S311 - at any moment of the rescuer's round
        a.kill()
        waits = [(fleet.started(job, b).at - a.killed_at) / 1e9 for job in jobs]
        close(fleet, b)
        assert check(fleet.book(), read_contents(house.url), LeaseWatch()).findings == ()
    tell(f"{house.engine}: jobs of a killed worker ran again after {max(waits):.2f} s (promised: {ON_THIS_HOST:g} s)")
    assert max(waits) <= ON_THIS_HOST + MARGIN


def test_g4_a_worker_that_starts_on_the_host_rescues_the_jobs_of_the_dead(
    house: House, tmp_path: Path, tell: Tell
) -> None:
    """With default settings, when no other worker was there."""
    with Fleet(house.url, tmp_path) as fleet:
        a = fleet.worker("a")
        job = fleet.enqueue_hold(1)
        fleet.started(job, a)
        a.kill()
        b = fleet.worker("b")
        fleet.opened(b)
        opened_at = time.monotonic_ns()
        wait = (fleet.started(job, b).at - opened_at) / 1e9
        close(fleet, b)
    tell(f"{house.engine}: a worker that starts on the host brought them back after {max(wait, 0.0):.2f} s")
    assert wait <= ON_THIS_HOST + MARGIN


def close(fleet: Fleet, worker: Member) -> None:
    fleet.release(worker.name)
    fleet.wait(lambda: unfinished(fleet.url) == 0)
    assert worker.end() == 0


@pytest.mark.parametrize("last_beat", [timedelta(0), timedelta(seconds=3.01), timedelta(seconds=4.9)])
async def test_g4_elsewhere_the_lease_alone_brings_them_back_in_time(
    store: Store, clock: ManualClock, last_beat: timedelta
) -> None:
    """Wherever in the rescuer's round the last beat falls: within 30 s + 5 s, the defaults."""
    settings = WorkerSettings()
    rescuer = Rescuer(
        store,
        Emitter(),
        clock,
        RescueSettings(lease=settings.lease, sweep=settings.sweep),
        RescueOwner(on_ready=lambda: None),
    )
    await rescuer.tick()
    while clock.monotonic() + TICK.total_seconds() <= last_beat.total_seconds():
        clock.move(TICK)
        await rescuer.tick()
    until_next_tick = timedelta(seconds=clock.monotonic()) + TICK - last_beat
    clock.move(TICK - until_next_tick)
    job = await held_elsewhere(store)
    waited = until_next_tick
    clock.move(until_next_tick)
    await rescuer.tick()
    while await state_of(store, job) is JobState.RUNNING:
        clock.move(TICK)
        waited += TICK
        await rescuer.tick()
    assert settings.lease < waited <= settings.lease + settings.sweep


async def held_elsewhere(store: Store) -> JobId:
    """A job in the hands of a worker of another host."""
    job = await enqueue(store)
    await claim_one(store, await store.register(a_worker()))
    return job


class Outage:
    """A store whose database is away for every process, as long as the test says so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_on = False

    def __getattr__(self, name: str) -> Any:
        if self.is_on:
            raise StoreUnavailable("the server is gone")
        return getattr(self._store, name)


async def test_c4_after_an_outage_no_worker_is_declared_dead_before_it_can_beat(
    store: Store, clock: ManualClock
) -> None:
    """However long it was: all are given one sweep to be heard again, and who is not heard then is dead."""
    settings = WorkerSettings()
    outage: Any = Outage(store)
    rescuer = Rescuer(
        outage,
        Emitter(),
        clock,
        RescueSettings(lease=settings.lease, sweep=settings.sweep),
        RescueOwner(on_ready=lambda: None),
    )
    alive, dead = await store.register(a_worker(name="alive")), await store.register(a_worker(name="dead"))
    await rescuer.tick()
    outage.is_on = True
    for _ in range(60):
        clock.move(TICK)
        with pytest.raises(StoreUnavailable):
            await rescuer.tick()
    outage.is_on = False
    assert (await rescuer.tick()).buried == 0
    assert await store.beat(alive)
    buried = 0
    for _ in range(5):
        clock.move(TICK)
        buried += (await rescuer.tick()).buried
    assert buried == 1
    assert await store.beat(alive)
    assert not await store.beat(dead)


async def test_g4_a_rescued_job_is_announced_to_all_workers(store: Store, clock: ManualClock) -> None:
    """The rescuer may not serve the queue of the job that it brings back, and others must not wait for their poll."""
    settings = WorkerSettings()
    rung: list[set[str]] = []
    bell: Any = Bell(store, rung)
    rescuer = Rescuer(
        bell,
        Emitter(),
        clock,
        RescueSettings(lease=settings.lease, sweep=settings.sweep),
        RescueOwner(on_ready=lambda: None),
    )
    await held_elsewhere(store)
    clock.move(settings.lease + TICK)
    await rescuer.tick()
    assert {"default"} in rung


class Bell:
    """A store that notes who is woken."""

    def __init__(self, store: Store, rung: list[set[str]]) -> None:
        self._store = store
        self._rung = rung

    def ring(self, queues: Iterable[str]) -> None:
        self._rung.append(set(queues))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_f2_a_job_that_kills_its_workers_ends_dead_and_the_others_get_done(house: House, tmp_path: Path) -> None:
    with Fleet(house.url, tmp_path) as fleet:
        innocent = [fleet.enqueue("nap", number, seconds=0.0) for number in range(5)]
        poison = fleet.enqueue("poison", 5)
        innocent += [fleet.enqueue("nap", number, seconds=0.0) for number in range(6, 12)]
        deaths = 0
        victim = fleet.worker("victim-0")
        victim.is_expected_to_end = True

        def is_over() -> bool:
            nonlocal victim, deaths
            if not victim.runs:
                deaths += 1
                victim = fleet.worker(f"victim-{deaths}")
                victim.is_expected_to_end = True
            return unfinished(fleet.url) == 0

        fleet.wait(is_over)
        fleet.opened(victim)
        assert victim.end() == 0
        contents = read_contents(house.url)
        states = {standing.job: (standing.state, standing.reason) for standing in contents.standings}
        assert states[poison] == ("dead", "crash limit reached")
        assert deaths == 3
        assert {states[job] for job in innocent} == {("succeeded", "done")}
        assert check(fleet.book(), contents, LeaseWatch()).findings == ()
        causes = query(house.url, f"SELECT error_type, message FROM {{attempt}} WHERE job_id = '{poison}'")
        assert len(causes) == 3
        assert all(kind == "ProcessCrashed" and "died while it held the job" in cause for kind, cause in causes)
