"""What a worker tells: every death and every retry, whatever led to it, and in words that people read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import A_FAILURE, apply, claim_one, employ, enqueue, show, start, state_of
from tests.support.waiting import until

from perdure import App, Backoff, Event, Jitter, JobState, Retry, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.events import Emitter, JobDied, JobRetrying, JobsRescued
from perdure.storage.port import Store
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings
from perdure.worker.worker import Worker

QUICK = WorkerSettings(grace="200ms", poll="50ms", stop_timeout=0)


@asynccontextmanager
async def at_work(app: App, settings: WorkerSettings = QUICK) -> AsyncIterator[Worker]:
    worker = await app.worker(settings)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url) as app:
        yield app


@pytest.fixture
def heard(app: App) -> list[Event]:
    events: list[Event] = []
    app.subscribe(events.append)
    return events


def of(kind: type[Event], heard: list[Event]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


def raises() -> Retry:
    raise LookupError("no such setting")


@pytest.mark.parametrize("unreadable", [raises, lambda: "5 times"])
async def test_e6_a_policy_that_can_no_longer_be_read_does_not_break_the_worker(
    app: App, heard: list[Event], unreadable: Callable[[], Any]
) -> None:
    """The default holds, the retry is told, and the worker goes on with the next job."""
    setting: list[Callable[[], Any]] = [Retry]

    def policy() -> Retry:
        policy: Retry = setting[0]()
        return policy

    @app.job(retry=policy)
    async def fails() -> None:
        raise ValueError("broken")

    @app.job(priority=9)
    async def fine() -> str:
        return "fine"

    failing = await fails.enqueue()
    assert (await failing.view()).max_attempts == 5
    setting[0] = unreadable
    async with at_work(app, replace(QUICK, concurrency=1)):
        assert await (await fine.enqueue()).result("30s") == "fine"
        await until(lambda: of(JobRetrying, heard))
    [told] = of(JobRetrying, heard)
    assert (told.job_id, told.max_attempts) == (failing.id, 5)
    assert told.error.startswith("ValueError: broken (its retry setting could not be read")
    assert (await failing.view()).state is JobState.RETRYING


async def test_f2_a_retry_after_a_crash_shows_how_many_failures_count(app: App, heard: list[Event]) -> None:
    """The third attempt of two that are allowed would be a riddle: those that crashed do not count."""

    @app.job(retry=Retry(attempts=2))
    async def fails() -> None:
        raise ValueError("broken")

    handle = await fails.enqueue()
    store = await app.store()
    for _ in range(2):
        claim = await claim_one(store, await employ(store))
        await apply(store, transition.crashed(claim, A_FAILURE))
    async with at_work(app):
        await until(lambda: of(JobRetrying, heard))
    [told] = of(JobRetrying, heard)
    assert (told.job_id, told.attempt, told.failures, told.max_attempts) == (handle.id, 3, 1, 2)


async def test_f2_rules_by_error_show_the_largest_limit_and_then_their_own(app: App, heard: list[Event]) -> None:
    """One attempt is the base policy's; that would read as attempt 2 of 1."""
    patient = Retry(attempts=3, backoff=Backoff.fixed("1h"), jitter=Jitter.none())

    @app.job(retry=Retry(attempts=1, by_error={OSError: patient, KeyError: Retry(attempts=7)}))
    async def fails() -> None:
        raise OSError("unplugged")

    handle = await fails.enqueue()
    assert (await handle.view()).max_attempts == 7
    async with at_work(app):
        await until(lambda: of(JobRetrying, heard))
    [told] = of(JobRetrying, heard)
    assert (told.failures, told.max_attempts) == (1, 3)
    assert (await handle.view()).max_attempts == 3
    assert (await (await app.desk("ada")).why(handle.id)).answer == (
        "Attempt 1 did not succeed; attempt 2 of 3 comes later."
    )


async def test_f6_the_death_of_a_job_without_a_handler_is_reported(app: App, heard: list[Event]) -> None:
    store = await app.store()
    job_id = await enqueue(store, kind="unheard of")
    async with at_work(app, replace(QUICK, missing_handler="dead")):
        await until(lambda: of(JobDied, heard))
    assert of(JobDied, heard) == [
        JobDied(
            job_id,
            "unheard of",
            1,
            "no handler for this kind",
            "UnknownKind: no handler for kind 'unheard of' in this worker",
        )
    ]
    assert await state_of(store, job_id) is JobState.DEAD


async def test_f2_the_death_of_a_job_that_crashed_too_often_is_reported_by_who_rescued_it(
    store: Store, clock: ManualClock
) -> None:
    emitter = Emitter()
    heard: list[Event] = []
    emitter.subscribe(heard.append)
    killer, victim = await start(store, crash_limit=1), await start(store)
    for worker in await store.workers():
        await store.retire(worker.id)
    lease, sweep = QUICK.lease, QUICK.sweep
    clock.move(timedelta(seconds=8, milliseconds=602))
    await Rescuer(
        store, emitter, clock, RescueSettings(lease=lease, sweep=sweep), RescueOwner(on_ready=lambda: None)
    ).tick()
    [death] = of(JobDied, heard)
    assert (death.job_id, death.kind, death.attempt, death.reason) == (
        killer.job_id,
        "greet",
        1,
        "crash limit reached",
    )
    assert death.error == "ProcessCrashed: worker worker-1 died while it held the job (silent for 9s)"
    assert of(JobsRescued, heard) == [JobsRescued(ready=1, dead=1)]
    assert await state_of(store, victim.job_id) is JobState.READY


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_a_time_limit_reads_as_it_was_written(app: App, mode: str) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def slow_thread() -> None:
        while True:
            time.sleep(0.005)

    job = app.job(name="slow", timeout="200ms", retry=Retry.none())(slow if mode == "async" else slow_thread)
    handle = await job.enqueue()
    store = await app.store()
    async with at_work(app):
        with pytest.raises(Exception, match="time limit of 200ms"):
            await handle.result("30s")
    assert (await show(store, handle.id)).last_error == "TimeoutError: the attempt exceeded its time limit of 200ms"
