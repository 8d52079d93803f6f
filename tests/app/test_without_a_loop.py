"""An app in the hands of callers without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from perdure import App, JobNotSuccessful, JobState, Permanent, SchemaError


@pytest.fixture
def app(empty_url: str) -> Iterator[App]:
    app = App(empty_url, migrate=False)
    yield app
    app.close_sync()


def test_tables_can_be_made_without_enqueueing(app: App) -> None:
    """Also by an app that leaves the schema alone when it opens its database."""

    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(SchemaError, match="perdure migrate"):
        add.enqueue_sync(1, 2)
    assert [name[:4] for name in app.migrate_sync()][:2] == ["0001", "0002"]
    assert app.migrate_sync() == []
    assert asyncio.run(app.migrate()) == []
    assert add.enqueue_sync(1, 2).is_new


def test_a_job_is_looked_at_and_waited_for(app: App) -> None:
    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    @app.job
    async def refuse() -> None:
        raise Permanent("no")

    app.migrate_sync()
    handle, refused = add.enqueue_sync(1, 2), refuse.enqueue_sync()
    assert handle.view_sync().state is JobState.READY
    with pytest.raises(TimeoutError, match=f"job {handle.id} is not finished after 500ms: it is ready"):
        handle.result_sync(timeout="500ms")

    async def work() -> None:
        async with app:
            worker = await app.worker()
            running = asyncio.create_task(worker.run())
            try:
                assert await asyncio.to_thread(handle.result_sync, "30s") == 3
                with pytest.raises(JobNotSuccessful, match="no"):
                    await asyncio.to_thread(refused.result_sync, 30)
            finally:
                worker.stop()
                await asyncio.wait_for(running, 30)

    asyncio.run(work())
    assert handle.view_sync().state is JobState.SUCCEEDED
