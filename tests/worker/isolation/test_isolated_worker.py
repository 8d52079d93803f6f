"""A worker whose handlers exit, eat memory, never end or never listen: it lives, and every job is accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.builders.jobs import enqueue, show, state_of
from tests.support.programs.isolated_jobs import app
from tests.support.waiting import is_gone, text_of, until

from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.worker.settings import WorkerSettings
from perdure.worker.wiring.worker import build_worker
from perdure.worker.worker import Worker

SETTINGS = WorkerSettings(
    poll=timedelta(milliseconds=20), grace=timedelta(milliseconds=200), stop_timeout=timedelta(milliseconds=200)
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = store_for(f"sqlite:///{tmp_path / 'perdure.db'}")
    await store.open()
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def work(store: Store) -> AsyncIterator[Callable[[], Awaitable[Worker]]]:
    """Open a worker; it is stopped at the end, if not before."""
    async with AsyncExitStack() as stack:

        async def opened() -> Worker:
            worker = build_worker(
                store=store, kinds=app.kinds, settings=SETTINGS, emitter=app.events, clock=SystemClock()
            )
            task = asyncio.create_task(worker.run())

            async def stop() -> None:
                worker.stop()
                await asyncio.wait_for(task, 30)

            stack.push_async_callback(stop)
            await asyncio.wait_for(worker.opened.wait(), 30)
            return worker

        yield opened


async def put(store: Store, kind: str, /, **args: Any) -> JobId:
    return await enqueue(store, kind=kind, args=msgspec.json.encode(args).decode(), max_attempts=2)


async def reached(store: Store, job_id: JobId, states: frozenset[JobState]) -> None:
    async with asyncio.timeout(60):
        while await state_of(store, job_id) not in states:
            await asyncio.sleep(0.01)


async def test_for_every_handler_that_dies_the_cause_is_recorded_and_the_worker_lives(
    store: Store, work: Callable[[], Awaitable[Worker]]
) -> None:
    jobs = {
        "exit code 3": await put(store, "leave", code=3),
        "SIGSEGV": await put(store, "crash_natively"),
        "memory limit": await put(store, "eat", mib=512),
        "time limit": await put(store, "never_end"),
    }
    well = await put(store, "add", a=1, b=2)
    worker = await work()
    await reached(store, well, FINAL)
    after_failure = FINAL | {JobState.RETRYING}
    for cause, job_id in jobs.items():
        await reached(store, job_id, after_failure)
        [attempt, *_] = await store.attempts(job_id)
        assert cause in attempt.message
        view = await show(store, job_id)
        assert (view.failures, view.crashes) == (1, 0), "a failed attempt, not a crash of the worker"
    assert (await show(store, well)).result == "3"
    assert worker.finished == 5


async def test_cancelling_a_handler_that_does_not_listen_kills_it(
    store: Store, work: Callable[[], Awaitable[Worker]], tmp_path: Path
) -> None:
    note = tmp_path / "note"
    job_id = await put(store, "ignore_everything", note=str(note))
    await work()
    pids = [int(pid) for pid in (await until(lambda: text_of(note))).split()]
    await store.cancel(JobFilter(ids=(job_id,)), By("test", "not wanted any more"), 1)
    await reached(store, job_id, frozenset({JobState.CANCELLED}))
    await until(lambda: all(is_gone(pid) for pid in pids))


async def test_closing_puts_an_isolated_job_back_at_no_cost_and_leaves_no_process(
    store: Store, work: Callable[[], Awaitable[Worker]], tmp_path: Path
) -> None:
    note = tmp_path / "note"
    job_id = await put(store, "ignore_everything", note=str(note))
    worker = await work()
    pids = [int(pid) for pid in (await until(lambda: text_of(note))).split()]
    worker.stop()
    await reached(store, job_id, frozenset({JobState.READY}))
    view = await show(store, job_id)
    assert (view.reason, view.failures, view.crashes) == (Reason.RELEASED, 0, 0)
    await until(lambda: all(is_gone(pid) for pid in pids))
