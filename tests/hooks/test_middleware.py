"""Middleware: what an application runs around every attempt, of sync and async handlers alike."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from tests.hooks.conftest import AtWork

from perdure import App, Context, JobNotSuccessful, JobState, SettingsError
from perdure.hooks import middleware
from perdure.testing import Sandbox

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


async def test_it_runs_around_sync_and_async_handlers_the_first_outermost(app: App, at_work: AtWork) -> None:
    trail: list[str] = []

    @app.middleware
    def outer(ctx: Context) -> Iterator[None]:
        trail.append(f"outer in {ctx.kind} {ctx.attempt}")
        yield
        trail.append("outer out")

    @app.middleware
    async def inner(ctx: Context) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        trail.append(f"inner in {ctx.kind}")
        yield
        trail.append("inner out")

    @app.job
    async def soon(n: int) -> int:
        trail.append("handler")
        return n

    @app.job
    def blocking(n: int) -> int:
        trail.append("handler")
        return n

    async with at_work():
        for job in (soon, blocking):
            trail.clear()
            handle = await job.enqueue(7)
            assert await handle.result("30s") == 7
            name = job.kind.name
            assert trail == [f"outer in {name} 1", f"inner in {name}", "handler", "inner out", "outer out"]


async def test_what_a_plain_one_sets_in_a_context_variable_reaches_both_kinds_of_handlers(
    app: App, at_work: AtWork
) -> None:
    @app.middleware
    def tenant(ctx: Context) -> Iterator[None]:
        token = TENANT.set(ctx.meta["tenant"])
        try:
            yield
        finally:
            TENANT.reset(token)

    @app.job
    async def soon() -> str:
        return TENANT.get()

    @app.job
    def blocking() -> str:
        return TENANT.get()

    async with at_work():
        for job in (soon, blocking):
            for name in ("acme", "umbrella"):
                handle = await job.using(meta={"tenant": name}).enqueue()
                assert await handle.result("30s") == name


async def test_an_async_one_is_left_where_it_was_entered_around_both_kinds_of_handlers(
    app: App, at_work: AtWork
) -> None:
    """It may reset what it has set in a context variable, and leave a timeout."""
    tasks: list[asyncio.Task[Any] | None] = []

    @app.middleware
    async def tenant(ctx: Context) -> AsyncIterator[None]:
        token = TENANT.set("acme")
        tasks.append(asyncio.current_task())
        try:
            async with asyncio.timeout(60):
                yield
        finally:
            tasks.append(asyncio.current_task())
            TENANT.reset(token)

    @app.job
    async def soon() -> int:
        return 7

    @app.job
    def blocking() -> int:
        return 7

    async with at_work():
        for job in (soon, blocking):
            assert await (await job.enqueue()).result("30s") == 7
    assert tasks[0] is tasks[1]
    assert tasks[2] is tasks[3]


async def test_an_async_one_that_is_out_of_time_fails_a_sync_handler_when_that_returns(
    app: App, at_work: AtWork
) -> None:
    out_of_time = threading.Event()

    @app.middleware
    async def limit(ctx: Context) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(0.01):
                yield
        finally:
            out_of_time.set()

    @app.job
    def blocking() -> bool:
        return out_of_time.wait(30)

    async with at_work():
        with pytest.raises(JobNotSuccessful, match="TimeoutError"):
            await (await blocking.enqueue()).result("30s")


@pytest.mark.parametrize("late", [False, True])
async def test_an_async_one_around_a_sync_handler_cannot_end_the_worker(app: App, at_work: AtWork, late: bool) -> None:
    """SystemExit fails the attempt, as it does in a handler."""

    @app.middleware
    async def leave(ctx: Context) -> AsyncIterator[None]:
        if not late:
            raise SystemExit(3)
        yield
        raise SystemExit(3)

    @app.job
    def blocking() -> None: ...

    async with at_work():
        for _ in range(2):
            with pytest.raises(JobNotSuccessful, match="SystemExit"):
                await (await blocking.enqueue()).result("30s")


def catching_async(seen: list[BaseException], then: BaseException | None) -> Callable[[Context], AsyncIterator[None]]:
    async def around(ctx: Context) -> AsyncIterator[None]:
        try:
            yield
        except Exception as error:
            seen.append(error)
            if then is not None:
                raise then from error

    return around


def catching(seen: list[BaseException], then: BaseException | None) -> Callable[[Context], Iterator[None]]:
    def around(ctx: Context) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            seen.append(error)
            if then is not None:
                raise then from error

    return around


@pytest.mark.parametrize("make", [catching, catching_async])
@pytest.mark.parametrize("then", [None, KeyError("of the middleware")])
async def test_it_sees_the_exception_itself_and_may_replace_or_catch_it(
    app: App,
    at_work: AtWork,
    make: Callable[[list[BaseException], BaseException | None], Any],
    then: BaseException | None,
) -> None:
    seen: list[BaseException] = []
    app.middleware(make(seen, then))

    @app.job
    async def soon() -> None:
        raise LookupError("of the handler")

    @app.job
    def blocking() -> None:
        raise LookupError("of the handler")

    async with at_work():
        for job in (soon, blocking):
            handle = await job.enqueue()
            if then is None:
                await handle.result("30s")
            else:
                with pytest.raises(JobNotSuccessful, match="of the middleware"):
                    await handle.result("30s")
    assert [str(error) for error in seen] == ["of the handler"] * 2
    assert all(error.__traceback__ is not None for error in seen)


async def test_one_that_raises_before_it_yields_fails_the_attempt_and_the_handler_does_not_run(
    app: App, at_work: AtWork
) -> None:
    ran: list[str] = []

    @app.middleware
    def session(ctx: Context) -> Iterator[None]:
        if ctx.attempt:
            raise ConnectionError("no session for you")
        yield

    @app.job
    async def soon() -> None:
        ran.append("soon")

    async with at_work():
        handle = await soon.enqueue()
        with pytest.raises(JobNotSuccessful, match="no session for you"):
            await handle.result("30s")
    assert ran == []


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("yields", "problem"), [(0, "didn't yield"), (2, "didn't stop")])
async def test_one_that_does_not_yield_once_fails_the_attempt_and_is_closed(
    app: App, at_work: AtWork, is_async: bool, yields: int, problem: str
) -> None:
    closed: list[str] = []

    def plain(ctx: Context) -> Iterator[None]:
        try:
            for _ in range(yields):
                yield
        finally:
            closed.append(ctx.kind)

    async def later(ctx: Context) -> AsyncIterator[None]:
        try:
            for _ in range(yields):
                yield
        finally:
            closed.append(ctx.kind)

    app.middleware(later if is_async else plain)

    @app.job
    async def soon() -> None: ...

    @app.job
    def blocking() -> None: ...

    async with at_work():
        for job in (soon, blocking):
            with pytest.raises(JobNotSuccessful, match=problem):
                await (await job.enqueue()).result("30s")
    assert closed == [soon.kind.name, blocking.kind.name]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", [StopIteration("odd"), RuntimeError("odd"), StopAsyncIteration("odd")])
async def test_exceptions_that_end_generators_pass_through_as_they_are(
    app: App, at_work: AtWork, is_async: bool, error: Exception
) -> None:
    def plain(ctx: Context) -> Iterator[None]:
        yield

    async def later(ctx: Context) -> AsyncIterator[None]:
        yield

    app.middleware(later if is_async else plain)

    @app.job
    def blocking() -> None:
        raise error

    @app.job
    async def soon() -> None:
        raise error

    expected = "RuntimeError" if isinstance(error, StopIteration) else type(error).__name__
    async with at_work():
        for job, name in ((soon, expected), (blocking, type(error).__name__)):
            with pytest.raises(JobNotSuccessful, match=f"{name}: "):
                await (await job.enqueue()).result("30s")


async def test_a_wait_passes_through_it_and_each_attempt_is_wrapped_again(app: App) -> None:
    """A park is no exception of the application's: `except Exception` does not see it."""
    entered: list[int] = []
    caught: list[BaseException] = []

    @app.middleware
    def watch(ctx: Context) -> Iterator[None]:
        entered.append(ctx.attempt)
        try:
            yield
        except Exception as error:
            caught.append(error)
            raise

    @app.job
    async def nap(ctx: Context) -> str:
        await ctx.sleep("1h")
        return "rested"

    async with Sandbox(app) as box:
        handle = await nap.enqueue()
        await box.drain(travel=True)
        assert (await handle.view()).state is JobState.SUCCEEDED
    assert entered == [1, 1]
    assert caught == []


async def test_context_managers_made_by_contextlib_will_do(app: App) -> None:
    trail: list[str] = []

    @app.middleware
    @contextmanager
    def plain(ctx: Context) -> Iterator[None]:
        trail.append("plain")
        yield

    @app.middleware
    @asynccontextmanager
    async def later(ctx: Context) -> AsyncIterator[None]:
        trail.append("later")
        yield

    @app.job
    async def soon() -> None: ...

    async with Sandbox(app) as box:
        await soon.enqueue()
        await box.drain()
    assert trail == ["plain", "later"]


async def test_a_middleware_leaves_nothing_behind_that_only_the_collector_frees(app: App, at_work: AtWork) -> None:
    @app.middleware
    def empty(ctx: Context) -> Iterator[None]:
        yield

    @app.job
    async def soon() -> None: ...

    async with at_work():
        await (await soon.enqueue()).result("30s")
        gc.collect()
        before = contexts()
        gc.disable()
        try:
            for _ in range(20):
                await (await soon.enqueue()).result("30s")
            left = contexts() - before
        finally:
            gc.enable()
    assert left <= 1


async def test_the_only_one_adds_a_single_frame_to_an_attempt(app: App, at_work: AtWork) -> None:
    """It is on the path of every attempt, so its price is kept low."""

    @app.middleware
    def empty(ctx: Context) -> Iterator[None]:
        yield

    @app.job
    async def soon() -> int:
        return frames_of_middleware()

    @app.job
    def blocking() -> int:
        return frames_of_middleware()

    async with at_work():
        for job in (soon, blocking):
            assert await (await job.enqueue()).result("30s") == 1


def frames_of_middleware() -> int:
    return sum(frame.f_code.co_filename == middleware.__file__ for frame, _ in traceback.walk_stack(None))


def contexts() -> int:
    return sum(isinstance(thing, Context) for thing in gc.get_objects())


def no_yield(ctx: Context) -> None: ...


def no_argument() -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_yield, "middleware no_yield must yield once"),
        (no_argument, "middleware no_argument must take one argument, the context"),
        ("tenant", "middleware must be a function that yields once, got 'tenant'"),
    ],
)
def test_what_cannot_be_one_is_refused_by_name(function: Any, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        App("sqlite:///unused.db").middleware(function)
