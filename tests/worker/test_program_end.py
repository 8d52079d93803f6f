"""A worker inside another program, which ends without stopping it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.support.waiting import until

from perdure import App, Context, JobState, JobView, WorkerSettings
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.storage.records import Wanted

JOBS = 5


async def test_g9_a_program_that_ends_costs_the_jobs_of_its_worker_no_attempt(engine_url: str) -> None:
    """`asyncio.run` cancels every task at once: the worker's own, those of its actors, and those of its handlers."""
    app, begun = App(engine_url), list[int]()

    @app.job
    async def lingers(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(600)

    @app.job
    async def is_quick() -> None:
        return None

    async def program() -> list[JobId]:
        ids = [(await lingers.enqueue(number)).id for number in range(JOBS)]
        worker = await app.worker()
        program.working = asyncio.create_task(worker.run())  # type: ignore[attr-defined] # or it may be collected
        await until(lambda: len(begun) == JOBS)
        quick = await is_quick.enqueue()
        await quick.result("30s")
        return ids

    ids = await asyncio.to_thread(lambda: asyncio.run(program()))
    async with app:
        views = [await app.view(job_id) for job_id in ids]
    assert [_standing(view) for view in views] == [(JobState.READY, 0, 0)] * JOBS


@pytest.mark.parametrize("has_middleware", [False, True])
async def test_g9_a_thread_that_outlives_its_worker_ends_in_silence(
    engine_url: str, monkeypatch: pytest.MonkeyPatch, has_middleware: bool
) -> None:
    """Its attempt was given up and its job is back in the queue; the event loop is closed when its handler returns."""
    app, over, threads = App(engine_url), threading.Event(), list[threading.Thread]()
    problems = list[threading.ExceptHookArgs]()
    monkeypatch.setattr(threading, "excepthook", problems.append)

    if has_middleware:

        @app.middleware
        async def around(ctx: Context) -> AsyncIterator[None]:
            yield

    @app.job
    def lingers() -> None:
        threads.append(threading.current_thread())
        over.wait(60)

    async def program() -> JobId:
        async with app:
            handle = await lingers.enqueue()
            worker = await app.worker(WorkerSettings(stop_timeout="100ms", grace="50ms"))
            working = asyncio.create_task(worker.run())
            await until(lambda: bool(threads))
            worker.stop()
            await working
            return handle.id

    job_id = await asyncio.to_thread(lambda: asyncio.run(program()))
    over.set()
    await asyncio.to_thread(threads[0].join, 60)
    assert problems == []
    async with app:
        assert _standing(await app.view(job_id)) == (JobState.READY, 0, 0)


async def test_g9_a_program_that_ends_in_the_middle_of_a_claim_costs_no_attempt(
    engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs are taken, and the worker never hears which: others would think that it died over them."""
    app, taken = App(engine_url), list[Claim]()

    @app.job
    async def is_never_begun(number: int) -> None:
        raise AssertionError(number)

    async def program() -> list[JobId]:
        ids = [(await is_never_begun.enqueue(number)).id for number in range(JOBS)]
        worker = await app.worker()
        claim = worker._parts.around.store.claim

        async def claim_without_an_answer(worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
            taken.extend(await claim(worker_id, wanted))
            await asyncio.sleep(600)
            return taken

        monkeypatch.setattr(worker._parts.around.store, "claim", claim_without_an_answer)
        program.working = asyncio.create_task(worker.run())  # type: ignore[attr-defined] # as above
        await until(lambda: len(taken) == JOBS)
        return ids

    ids = await asyncio.to_thread(lambda: asyncio.run(program()))
    async with app:
        views = [await app.view(job_id) for job_id in ids]
    assert [_standing(view) for view in views] == [(JobState.READY, 0, 0)] * JOBS


def _standing(view: JobView | None) -> tuple[JobState, int, int] | None:
    return None if view is None else (view.state, view.failures, view.crashes)
