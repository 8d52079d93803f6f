"""Whatever a handler raises and whenever it is stopped, its attempt ends, is recorded, and leaves its place."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.bench import Bench, Ledger, a_claim
from tests.support.waiting import until

from perdure import App, Context, JobState
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.events import LoopFailed
from perdure.kinds.kind import Kind
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.running import Running


class Foreign(BaseException):
    """As the timeouts of some libraries are: no Exception."""


@pytest.fixture
def app() -> App:
    return App("sqlite:///unused.db")


async def recorded(bench: Bench, ledger: Ledger, jobs: int = 1) -> list[Transition]:
    await until(lambda: len(ledger.written) == jobs)
    assert (bench.executor.running, bench.slots.total) == (set(), 0)
    await bench.executor.close()
    return list(ledger.written.values())


async def test_the_time_limit_of_a_sync_handler_begins_when_a_thread_takes_it(app: App) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @app.job
    def first() -> None:
        begun.set()
        go_on.wait(30)

    @app.job(timeout="30s")
    def second() -> None:
        return None

    ledger = Ledger()
    bench = Bench(app, ledger, threads=1)
    bench.executor.start([a_claim("first"), a_claim("second")])
    await until(begun.is_set)
    assert [running.timer for running in bench.executor.running] == [None, None]
    go_on.set()
    assert {move.to for move in await recorded(bench, ledger, 2)} == {JobState.SUCCEEDED}


@pytest.mark.parametrize("error", [Foreign, GeneratorExit, asyncio.CancelledError, KeyboardInterrupt])
async def test_what_is_no_exception_fails_a_sync_attempt_and_its_thread_lives_on(
    app: App, error: type[BaseException]
) -> None:
    @app.job
    def escapes() -> None:
        raise error("away")

    ledger = Ledger()
    bench = Bench(app, ledger, threads=1)
    bench.executor.start([a_claim("escapes"), a_claim("escapes")])
    for move in await recorded(bench, ledger, 2):
        assert (move.to, "away" in str(move.failure)) == (JobState.RETRYING, True)


@pytest.mark.parametrize("error", [Foreign, GeneratorExit, SystemExit, KeyboardInterrupt])
async def test_what_is_no_exception_fails_an_async_attempt_and_no_other(app: App, error: type[BaseException]) -> None:
    """The owner of the loop handles Ctrl-C: a KeyboardInterrupt then comes from the handler itself."""

    @app.job
    async def escapes() -> None:
        raise error("away")

    ledger = Ledger()
    bench = Bench(app, ledger)
    bench.executor.start([a_claim("escapes")])
    [move] = await recorded(bench, ledger)
    assert (move.to, "away" in str(move.failure)) == (JobState.RETRYING, True)


async def test_an_interrupt_from_the_keyboard_is_raised_again_after_the_attempt_has_ended(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)  # no other code listens to it

    @app.job
    async def escapes() -> None:
        raise KeyboardInterrupt

    ledger = Ledger()
    bench = Bench(app, ledger)
    running = Running(a_claim("escapes"), the_kind(app, "escapes"), StopFlag(), 0.0)
    bench.executor.running.add(running)
    bench.slots.take("default")
    with pytest.raises(KeyboardInterrupt):
        await bench.executor._runs.in_task(running, bench.executor._ended)
    [move] = await recorded(bench, ledger)
    assert move.to is JobState.RETRYING


class BrokenEffects(Ledger):
    """A store whose transactions cannot even be rolled back."""

    async def begin_effects(self, *, blocking: bool) -> BrokenEffects:
        del blocking
        return self

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        yield

    async def undo(self, *, forced: bool = False) -> None:
        raise RuntimeError(f"cannot undo, forced={forced}")


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_an_attempt_whose_transaction_cannot_be_undone_ends_all_the_same(app: App, mode: str) -> None:
    async def writes(ctx: Context) -> None:
        async with ctx.transaction():
            raise ValueError("no")

    def writes_sync(ctx: Context) -> None:
        with ctx.transaction():
            raise ValueError("no")

    app.job(name="writes")(writes if mode == "async" else writes_sync)
    ledger = BrokenEffects()
    bench = Bench(app, ledger)
    bench.executor.start([a_claim("writes")])
    [move] = await recorded(bench, ledger)
    assert (move.to, str(move.failure)) == (JobState.RETRYING, "ValueError: no")


async def test_one_that_cannot_be_started_goes_back_at_no_cost_and_the_others_run(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    def in_thread() -> None:
        return None

    @app.job
    async def in_task() -> None:
        return None

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError(f"can't start new thread {thread.name}")

    ledger = Ledger()
    bench = Bench(app, ledger)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        bench.executor.start([a_claim("in_thread"), a_claim("in_task")])
    back, done = sorted(await recorded(bench, ledger, 2), key=lambda move: move.to is JobState.SUCCEEDED)
    assert (back.to, back.reason, back.failures, back.crashes) == (JobState.PAUSED, Reason.RELEASED, 0, 0)
    assert back.wait is not None
    assert done.to is JobState.SUCCEEDED
    assert [event for event in bench.events if isinstance(event, LoopFailed)]


def the_kind(app: App, name: str) -> Kind:
    kind = app.kinds.get(name)
    assert kind is not None
    return kind
