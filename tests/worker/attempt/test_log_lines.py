"""`ctx.log`: what a handler logs goes to the log, and the newest lines are kept with its job."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs
from tests.support.builders.jobs import enqueue
from tests.support.working import at_work, found, seen

from perdure import App, Backoff, Context, JobState, Retry, SettingsError, WorkerSettings
from perdure.domain.jobs.log_lines import LogLine, NewLine
from perdure.errors import StoreUnavailable
from perdure.events import StoreTrouble
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.worker.attempt.log_lines import rendered

ONCE = Retry(attempts=1, backoff=Backoff.none())
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _plain_log() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
def app() -> App:
    """An app without jobs."""
    return App("sqlite:///unused.db")


async def lines_of(store: Store, app: App, handler: Any, **settings: Any) -> list[LogLine]:
    """What is kept of a job with this handler that has ended."""
    app.job(name="greet", retry=ONCE)(handler)
    async with at_work(store, app, stop_timeout="20s", **settings):
        job_id = await enqueue(store)
        await seen(store, job_id)
    return await store.lines(job_id)


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_what_is_logged_goes_to_the_log_and_is_kept_with_the_job(
    real_time_store: Store, app: App, mode: str
) -> None:
    def talk(ctx: Context) -> None:
        ctx.log.info("fetched", pages=3, url="https://example.org", note="two words")
        ctx.log.bind(step="parse").warning("odd page")

    async def in_task(ctx: Context, name: str) -> None:
        talk(ctx)

    def in_thread(ctx: Context, name: str) -> None:
        talk(ctx)

    with capture_logs() as log:
        lines = await lines_of(real_time_store, app, in_task if mode == "async" else in_thread)
    assert [(line.number, line.level, line.text) for line in lines] == [
        (1, "info", "fetched pages=3 url=https://example.org note='two words'"),
        (2, "warning", "odd page step=parse"),
    ]
    logged = [entry for entry in log if entry.get("event") in {"fetched", "odd page"}]
    assert [(entry["event"], entry["kind"], entry["attempt"]) for entry in logged] == [
        ("fetched", "greet", 1),
        ("odd page", "greet", 1),
    ]


async def test_lines_are_seen_while_the_job_runs(real_time_store: Store, app: App) -> None:
    go_on = asyncio.Event()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        ctx.log.info(name)
        await go_on.wait()

    async with at_work(real_time_store, app, stop_timeout="20s"):
        job_id = await enqueue(real_time_store)
        [line] = await found(lambda: real_time_store.lines(job_id))
        go_on.set()
        await seen(real_time_store, job_id)
    assert line.text == "Ada"


async def test_lines_of_a_failed_attempt_are_kept(real_time_store: Store, app: App) -> None:
    async def greet(ctx: Context, name: str) -> None:
        try:
            await asyncio.wait_for(asyncio.sleep(10), 0)
        except TimeoutError:
            ctx.log.exception("cannot greet")
            raise

    lines = await lines_of(real_time_store, app, greet)
    assert [(line.level, line.text) for line in lines] == [("error", "cannot greet (TimeoutError: )")]


async def test_threads_of_a_handler_may_log(real_time_store: Store, app: App) -> None:
    async def greet(ctx: Context, name: str) -> None:
        def talk(number: int) -> None:
            for turn in range(10):
                ctx.log.info("%s.%s", number, turn)

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    lines = await lines_of(real_time_store, app, greet)
    assert sorted(line.text for line in lines) == sorted(
        f"{number}.{turn}" for number in range(5) for turn in range(10)
    )


async def test_a_flood_keeps_the_newest_and_says_what_was_dropped(real_time_store: Store, app: App) -> None:
    async def greet(ctx: Context, name: str) -> None:
        for number in range(1_000):
            ctx.log.info("line %s", number, text="x" * 3_000)

    with capture_logs() as log:
        lines = await lines_of(real_time_store, app, greet, keep_lines=50)
    assert len([entry for entry in log if str(entry["event"]).startswith("line ")]) == 1_000
    assert len(lines) == 50
    assert lines[0].text == "… 951 lines dropped"
    assert [line.text[:9] for line in lines[1:]] == [f"line {number} "[:9] for number in range(951, 1_000)]
    assert {len(line.text) for line in lines[1:]} == {2_000}


async def test_nothing_is_kept_where_nothing_is_to_be_kept(real_time_store: Store, app: App) -> None:
    async def greet(ctx: Context, name: str) -> None:
        ctx.log.info("hello")

    with capture_logs() as log:
        assert await lines_of(real_time_store, app, greet, keep_lines=0) == []
    assert "hello" in [entry["event"] for entry in log]


@pytest.mark.parametrize("bad", [-1, True, "many", 1.5])
def test_a_bad_number_of_lines_is_refused_by_name(bad: Any) -> None:
    with pytest.raises(SettingsError, match=r"worker\.keep_lines must be"):
        WorkerSettings(keep_lines=bad)


async def test_what_the_log_does_not_take_is_not_kept(real_time_store: Store, app: App) -> None:
    async def greet(ctx: Context, name: str) -> None:
        ctx.log.debug("too much")
        ctx.log.info("%s of %s", 1, 2)

    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.getLogger("perdure.job").setLevel(logging.INFO)
    try:
        lines = await lines_of(real_time_store, app, greet)
    finally:
        logging.getLogger("perdure.job").setLevel(logging.NOTSET)
    assert [line.text for line in lines] == ["1 of 2"]


async def test_a_store_that_fails_costs_the_job_nothing(real_time_store: Store, app: App) -> None:
    async def save_lines(lines: Sequence[NewLine], keep: int = 0) -> None:
        raise StoreUnavailable("gone")

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        ctx.log.info("hello")

    real_time_store.save_lines = save_lines  # type: ignore[method-assign] # on purpose
    async with at_work(real_time_store, app, stop_timeout="20s") as shift:
        job_id = await enqueue(real_time_store)
        view = await seen(real_time_store, job_id)
    assert view.state is JobState.SUCCEEDED
    assert [event.what for event in shift.told(StoreTrouble)] == ["log lines"]


async def test_lines_carry_the_database_s_time_over_all_attempts(app: App, engine_url: str) -> None:
    @app.job
    async def greet(ctx: Context) -> None:
        ctx.log.info("attempt %s", ctx.attempt)
        if ctx.attempt == 1:
            raise OSError("no route to host")

    async with Sandbox(app, url=engine_url, start=START) as box:
        handle = await greet.enqueue()
        await box.drain()
        await box.drain(travel="1d")
        lines = (await (await app.desk("me")).job(handle.id)).lines
    assert [line.text for line in lines] == ["attempt 1", "attempt 2"]
    assert lines[0].at == START
    assert lines[1].at > START


class Nameless:
    """Something that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no name")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"event": "sent"}, "sent"),
        ({"event": "sent", "job_id": "1", "kind": "k", "attempt": 1, "to": "Ada"}, "sent to=Ada"),
        ({"event": "odd", "what": Nameless(), "empty": ""}, "odd what=<Nameless> empty=''"),
        ({"event": 3}, "3"),
        ({"event": "%d pages", "positional_args": (3,)}, "3 pages"),
        ({"event": "100 %!", "positional_args": (3,)}, "100 %!"),
        ({"event": "bad", "exc_info": OSError("gone")}, "bad (OSError: gone)"),
        ({"event": "bad", "exc_info": (OSError, OSError("gone"), None)}, "bad (OSError: gone)"),
        ({"event": "fine", "exc_info": True}, "fine"),
    ],
)
def test_a_line_is_what_happened_and_its_values(event: dict[str, Any], text: str) -> None:
    assert rendered(event) == text
