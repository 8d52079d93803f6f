"""Attempts that are stopped before they have begun, and why: nothing waits that need not, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from tests.support.builders.jobs import claim_one, employ, enqueue, show, start
from tests.support.waiting import until

from perdure import App, JobState, WorkerSettings
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.operate.audit import By
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Wanted
from perdure.worker.attempt.running import Stop
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue
from perdure.worker.surroundings import Surroundings
from perdure.worker.wiring.attempts import Owner, wire_attempts
from perdure.worker.wiring.worker import build_worker

QUICK = WorkerSettings(grace="200ms", poll="50ms", stop_timeout=0)


class Bench:
    """An executor with nothing around it but its acknowledger."""

    def __init__(self, app: App, store: Store) -> None:
        emitter, settings = Emitter(), WorkerSettings(grace="1h")
        self.freed = 0
        parts = wire_attempts(
            Surroundings(store=store, kinds=app.kinds, settings=settings, emitter=emitter, clock=SystemClock()),
            Slots((Queue("default"),), 10, 10),
            Owner(on_free=self.free),
        )
        self.slots, self.acknowledger, self.executor = parts.slots, parts.acknowledger, parts.executor

    def free(self) -> None:
        self.freed += 1


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(
    ("stop", "state", "reason"),
    [
        (Stop.CANCELLED, JobState.CANCELLED, "cancelled: wrong customer"),
        (Stop.CLOSING, JobState.READY, "released"),
        (Stop.LOST, JobState.RUNNING, "claimed"),
    ],
)
async def test_an_attempt_stopped_before_its_first_step_is_recorded_at_once(
    store: Store, stop: Stop, state: JobState, reason: str, isolate: bool
) -> None:
    """Its task never runs, so no other code would report its end before the grace is over."""
    app = App("sqlite:///unused.db")
    ran: list[str] = []

    @app.job(isolate=isolate)
    async def greet(name: str) -> None:
        ran.append(name)

    claim = await start(store)
    bench = Bench(app, store)
    bench.executor.start([claim])
    [running] = bench.executor.running
    bench.executor.stop(running, stop, "wrong customer")
    assert (bench.executor.running, bench.slots.total, bench.freed) == (set(), 0, 1)
    await asyncio.wait_for(bench.acknowledger.drain(), 10)
    await asyncio.sleep(0)  # its task, if it were to run
    view = await show(store, claim.job_id)
    assert (view.state, view.reason, ran) == (state, reason, [])
    await bench.executor.close()


async def test_a_running_job_keeps_the_reason_for_which_it_was_called_off(store: Store) -> None:
    app = App("sqlite:///unused.db")
    begun = asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        begun.set()
        await asyncio.sleep(60)

    worker = build_worker(store=store, kinds=app.kinds, settings=QUICK, emitter=Emitter(), clock=SystemClock())
    running = asyncio.create_task(worker.run())
    try:
        job_id = await enqueue(store)
        await asyncio.wait_for(begun.wait(), 30)
        await store.cancel(JobFilter(ids=(job_id,)), By("ops", "wrong customer"), 1)
        await until(lambda: worker.acknowledged)
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)
    view = await show(store, job_id)
    assert (view.state, view.reason) == (JobState.CANCELLED, "cancelled: wrong customer")


class SlowAnswers:
    """A store whose claims are written, and answered when the test lets them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.claimed = asyncio.Event()
        self.answer = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        claims = await self._store.claim(worker_id, wanted)
        if claims:
            self.claimed.set()
            await self.answer.wait()
        return claims


async def test_g9_what_a_claim_brings_to_a_closing_worker_goes_back_at_no_cost(store: Store) -> None:
    app = App("sqlite:///unused.db")
    ran: list[str] = []

    @app.job
    async def greet(name: str) -> None:
        ran.append(name)

    job_id = await enqueue(store)
    slow = SlowAnswers(store)
    worker = build_worker(
        store=cast("Store", slow), kinds=app.kinds, settings=QUICK, emitter=Emitter(), clock=SystemClock()
    )
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(slow.claimed.wait(), 30)
    worker.stop()
    await until(lambda: worker._parts.attempts.stages.is_closing)
    slow.answer.set()
    await asyncio.wait_for(running, 30)
    view = await show(store, job_id)
    assert (view.state, view.reason, view.crashes, ran) == (JobState.READY, "released", 0, [])
    assert await store.orphans(10) == []
    assert (await claim_one(store, await employ(store))).job_id == job_id
