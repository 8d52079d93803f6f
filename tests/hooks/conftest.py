"""An app on each engine, and a worker of it for as long as a test needs one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from perdure import App, Retry, WorkerSettings
from perdure.worker.worker import Worker

AtWork = Callable[[], AbstractAsyncContextManager[Worker]]


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    """An app of one test, whose jobs have one attempt."""
    async with App(engine_url, retry=Retry(attempts=1)) as app:
        yield app


@pytest.fixture
def at_work(app: App) -> AtWork:
    """Runs a worker of the app while a block lasts."""

    @asynccontextmanager
    async def working() -> AsyncIterator[Worker]:
        worker = await app.worker(WorkerSettings(grace="200ms", poll="50ms", stop_timeout=0))
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(running, 30)

    return working
