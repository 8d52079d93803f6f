"""`handle.result()` answers as soon as the job has ended in another store, without a timer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.waiting import until

from perdure import App, Context, JobNotSuccessful, Retry, WorkerSettings
from perdure.enqueue import endings as outcomes_module

HOUR = 3_600.0


@pytest.fixture
def only_by_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer helps."""
    monkeypatch.setattr(outcomes_module, "_FIRST_RETRY_SECONDS", HOUR)
    monkeypatch.setattr(outcomes_module, "_LONGEST_RETRY_SECONDS", HOUR)
    monkeypatch.setattr(outcomes_module, "_DELETED_CHECK_SECONDS", HOUR)


class House:
    """A worker, and beside it a caller with a store of its own."""

    def __init__(self, url: str) -> None:
        self.let_go = asyncio.Event()
        self.begun = 0
        self.workers, self.callers = App(url), App(url)
        for app in (self.workers, self.callers):
            app.job(name="plain")(self._plain)
            app.job(name="transactional")(self._transactional)
            app.job(name="failing", retry=Retry(attempts=1))(self._failing)

    async def _wait(self) -> None:
        self.begun += 1
        await self.let_go.wait()

    async def _plain(self, number: int) -> int:
        await self._wait()
        return number

    async def _transactional(self, ctx: Context, number: int) -> int:
        async with ctx.transaction():
            await self._wait()
        return number

    async def _failing(self, number: int) -> int:
        await self._wait()
        raise ValueError(number)

    async def known_to_worker(self, job_id: str) -> None:
        """On PostgreSQL the worker's store has heard that the job is awaited; an SQLite file needs no such word."""
        store: Any = await self.workers.store()
        if hasattr(store, "_ends"):
            await until(lambda: job_id in store._ends._awaited)

    async def resting(self) -> None:
        outcomes = await self.callers._stores.outcomes()
        await until(lambda: outcomes._listening and not outcomes._fresh and not outcomes._stir.is_set())


@asynccontextmanager
async def at_work(url: str) -> AsyncIterator[House]:
    house = House(url)
    async with house.workers, house.callers:
        worker = await house.workers.worker(WorkerSettings(grace="100ms", stop_timeout="1s"))
        running = asyncio.create_task(worker.run())
        await worker.started()
        try:
            yield house
        finally:
            house.let_go.set()
            worker.stop()
            await running


@pytest.mark.usefixtures("only_by_bell")
@pytest.mark.parametrize("kind", ["plain", "transactional", "failing"])
async def test_an_end_in_another_store_rings_for_the_caller(engine_url: str, kind: str) -> None:
    async with at_work(engine_url) as house:
        handle = await house.callers.job_named(kind).enqueue(7)
        waiting = asyncio.create_task(handle.result("20s"))
        await until(lambda: house.begun == 1)
        await house.known_to_worker(handle.id)
        await house.resting()
        house.let_go.set()
        if kind == "failing":
            with pytest.raises(JobNotSuccessful, match="ValueError: 7"):
                await waiting
        else:
            assert await waiting == 7


async def test_a_batch_and_many_callers_are_answered(engine_url: str) -> None:
    async with at_work(engine_url) as house:
        house.let_go.set()
        plain = house.callers.job_named("plain")
        handles = await house.callers.enqueue_many(plain.call(number) for number in range(50))
        assert await asyncio.gather(*(handle.result("20s") for handle in handles)) == list(range(50))
        batch = await house.callers.batch([plain.call(1), plain.call(2)])
        assert (await batch.result("20s")).succeeded == 2


async def test_the_timeout_shows_in_which_state_the_job_is(engine_url: str) -> None:
    async with App(engine_url) as app:
        plain = app.job(name="plain")(_nothing)
        handle = await plain.enqueue()
        with pytest.raises(TimeoutError, match=f"job {handle.id} is not finished after 10ms: it is ready"):
            await handle.result("10ms")


async def test_an_end_by_an_operator_is_noticed(engine_url: str) -> None:
    async with App(engine_url) as app, App(engine_url) as other:
        handle = await app.job(name="plain")(_nothing).enqueue()
        waiting = asyncio.create_task(handle.result("20s"))
        await until(lambda: app._stores._outcomes)
        await (await other.desk("me")).cancel(handle.id, why="not wanted")
        with pytest.raises(JobNotSuccessful, match="not wanted"):
            await waiting


def test_a_sync_caller_is_answered(engine_url: str) -> None:
    app = App(engine_url)
    plain = app.job(name="plain")(_nothing)
    handle = plain.enqueue_sync()
    try:
        with pytest.raises(TimeoutError, match="it is ready"):
            handle.result_sync("10ms")

        async def work() -> None:
            async with app:
                worker = await app.worker()
                running = asyncio.create_task(worker.run())
                await asyncio.to_thread(handle.result_sync, "20s")
                worker.stop()
                await running

        asyncio.run(work())
    finally:
        app.close_sync()


async def _nothing() -> None:
    """A job that is soon done."""
