"""A sandbox takes an app elsewhere and brings it back."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure import App, ArgumentError, ConflictError, NotFoundError, StoreRefused
from perdure.domain.operate.audit import By
from perdure.storage.records import JobFilter, Page
from perdure.testing import Sandbox


async def test_the_apps_own_database_is_not_touched(tmp_path: Path) -> None:
    own = tmp_path / "own.db"
    app = App(f"sqlite:///{own}")

    @app.job
    async def work() -> None: ...

    async with Sandbox(app):
        await work.enqueue()
        work.enqueue_sync()

    assert not own.exists()


async def test_afterwards_the_app_is_where_it_was_with_what_it_had_open(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'own.db'}")

    @app.job
    async def work() -> None: ...

    async with app:
        before = app.url, await app.store()
        await work.enqueue()
        async with Sandbox(app):
            await work.enqueue()
            assert await app.store() is not before[1]
        assert (app.url, await app.store()) == before
        assert len(await (await app.store()).jobs(JobFilter(), Page())) == 1


async def test_a_second_sandbox_of_one_app_is_refused_and_the_first_goes_on(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> int:
        return 1

    with pytest.raises(ConflictError, match="already in a sandbox"):
        Sandbox(app).__enter__()

    assert await box.result(await work.enqueue()) == 1


async def test_one_sandbox_after_another_begins_empty(app: App) -> None:
    @app.job
    async def work() -> None: ...

    async with Sandbox(app) as first:
        handle = await work.enqueue()
    async with Sandbox(app) as second:
        with pytest.raises(NotFoundError):
            await second.job(handle)
        assert second.enqueued() == []
    assert len(first.enqueued()) == 1
    async with first:
        assert first.enqueued() == []


async def test_nothing_stays_behind(app: App) -> None:
    @app.job
    def work() -> None: ...

    before = set(threading.enumerate())
    async with Sandbox(app) as box:
        folder = Path(app.url.removeprefix("sqlite:///")).parent
        await work.enqueue()
        work.enqueue_sync()
        await box.drain()
        assert folder.exists()
    handlers = [thread for thread in threading.enumerate() if thread.name == "perdure-handler"]
    for handler in handlers:
        handler.join(5)
    assert set(threading.enumerate()) <= before
    assert not folder.exists()


async def test_a_sandbox_that_cannot_be_opened_leaves_the_app_alone(app: App) -> None:
    before = app.url, set(threading.enumerate())
    with pytest.raises(StoreRefused, match="/no/such/folder"):
        Sandbox(app, url="sqlite:////no/such/folder/x.db").__enter__()
    assert (app.url, set(threading.enumerate())) == before


async def test_outside_its_block_a_sandbox_says_so(app: App) -> None:
    box = Sandbox(app)
    with pytest.raises(ConflictError, match="not open"):
        await box.drain()


async def test_code_that_opens_and_closes_the_app_may_do_so_in_a_sandbox(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> int:
        return 1

    async with app:
        handle = await work.enqueue()
    work.enqueue_sync()
    app.close_sync()

    assert (await box.drain()).succeeded == 2
    assert await handle.result() == 1


async def test_operators_commands_work_in_a_sandbox(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> None: ...

    handle = await work.using(delay="1h").enqueue()
    store = await app.store()
    await store.run_now(JobFilter(ids=(handle.id,)), By("ann"), 1)

    assert (await box.drain()).succeeded == 1


async def test_the_clock_stands_where_it_is_put_and_moves_on_request(app: App) -> None:
    start = datetime(2030, 5, 1, 8, tzinfo=UTC)
    async with Sandbox(app, start=start) as box:
        assert box.now == start
        assert box.travel("90m") == start + timedelta(minutes=90)
        assert box.travel_to(start + timedelta(days=1)) == box.now == start + timedelta(days=1)
        assert await (await app.store()).now() == box.now
        with pytest.raises(ArgumentError, match="lies in the past"):
            box.travel_to(start)
        with pytest.raises(ArgumentError, match="time zone"):
            box.travel_to(datetime(2031, 1, 1))  # noqa: DTZ001 - that is the mistake
        with pytest.raises(ArgumentError, match="when must be a datetime with a time zone, got '2031-01-01'"):
            box.travel_to("2031-01-01")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="time zone"):
        Sandbox(app, start=datetime(2031, 1, 1))  # noqa: DTZ001 - as above


async def test_views_have_the_apps_own_words(engine_url: str) -> None:
    app = App()

    @app.job(state_words={"succeeded": "sent"})
    async def send() -> None: ...

    async with Sandbox(app, url=engine_url) as box:
        handle = await send.enqueue()
        await box.drain()
        assert (await handle.view()).word == "sent"
