"""What a step has done is not done again, however often its job fails, waits, or is given back."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import apply, enqueue, show, start
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import (
    App,
    Backoff,
    ConflictError,
    Context,
    Jitter,
    JobState,
    Permanent,
    Retry,
    RetryAfter,
    Snooze,
    SyncContext,
)
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import paused
from perdure.events import StaleWrites
from perdure.flows.results import RESULT_LIMIT_BYTES
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.worker.attempt.context.stop_flag import StopFlag

EVERY_MINUTE = Retry(attempts=3, backoff=Backoff.fixed("1m"), jitter=Jitter.none())


class Outside:
    """The outside world: counts how often each thing was done, and fails as it is told to."""

    def __init__(self, **failures: int) -> None:
        self.done: list[str] = []
        self.failures = failures

    def do(self, what: str) -> str:
        self.done.append(what)
        if self.failures.get(what, 0) > 0:
            self.failures[what] -= 1
            raise ValueError(f"{what} failed")
        return f"{what} {len(self.done)}"

    async def fetch(self, what: str) -> str:
        return self.do(what)


async def test_e3_what_was_fetched_is_never_fetched_again(app: App, box: Sandbox) -> None:
    world = Outside(pdf=2)

    @app.job(retry=EVERY_MINUTE)
    async def audit(ctx: Context) -> list[str]:
        return [await ctx.step(name, world.fetch, name) for name in ("pagespeed", "screenshots", "pdf", "webhook")]

    handle = await audit.enqueue()
    await box.drain(travel=True)

    assert world.done == ["pagespeed", "screenshots", "pdf", "pdf", "pdf", "webhook"]
    assert await handle.result() == ["pagespeed 1", "screenshots 2", "pdf 5", "webhook 6"]
    assert (await box.job(handle)).failures == 2


async def test_e3_each_step_is_kept_with_its_result_and_its_time_before_the_next_begins(app: App, box: Sandbox) -> None:
    kept: list[list[tuple[str, str | None]]] = []

    @app.job
    async def audit(ctx: Context) -> None:
        async def look() -> None:
            found = (await (await app.store()).steps([ctx.job_id])).get(ctx.job_id, [])
            kept.append([(step.key, step.result) for step in found])

        await ctx.step("look", look)
        await ctx.step("number", functools.partial(int, "7"))
        await ctx.step("look", look)

    handle = await audit.enqueue()
    await box.drain()

    assert kept == [[], [("look", None), ("number", "7")]]
    steps = (await (await app.desk("me")).job(handle.id)).steps
    assert [(step.key, step.state.value, step.begun_at) for step in steps] == [
        (key, "done", box.now) for key in ("look", "number", "look#2")
    ]


async def test_e3_a_sync_handler_takes_the_same_steps_without_await(app: App, box: Sandbox) -> None:
    world = Outside(pdf=1)

    @app.job(retry=EVERY_MINUTE)
    def audit(ctx: SyncContext) -> list[str]:
        return [ctx.step("fetch", world.fetch, "fetch"), ctx.step("pdf", world.do, "pdf")]

    handle = await audit.enqueue()
    await box.drain(travel=True)

    assert world.done == ["fetch", "pdf", "pdf"]
    assert await handle.result() == ["fetch 1", "pdf 3"]


async def test_g9_a_finished_step_does_not_run_again_when_its_worker_closes(real_time_store: Store) -> None:
    app, world = App("sqlite:///unused.db"), Outside()
    begun = asyncio.Event()

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        first = await ctx.step("first", world.fetch, name)
        begun.set()
        if world.done == [name]:
            await ctx.step("second", asyncio.sleep, 3_600.0)
        return first

    job_id = await enqueue(real_time_store)
    async with at_work(real_time_store, app):
        await asyncio.wait_for(begun.wait(), 30)
    view = await show(real_time_store, job_id)
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 0, 0)
    world.done.append("closed")
    async with at_work(real_time_store, app):
        view = await seen(real_time_store, job_id)
    assert (view.result, world.done) == ('"Ada 1"', ["Ada", "closed"])


async def test_g9_a_step_that_ends_while_its_attempt_is_told_to_stop_is_kept(real_time_store: Store) -> None:
    """Its record is on its way when the attempt is cancelled."""
    app = App("sqlite:///unused.db")
    calls: list[str] = []
    writing, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        return await ctx.step("only", note, name)

    async def note(name: str) -> str:
        calls.append(name)
        return name

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(real_time_store, name)

        async def save_steps(self, writes: Any) -> list[bool]:
            writing.set()
            await go_on.wait()
            return await real_time_store.save_steps(writes)

    job_id = await enqueue(real_time_store)
    async with at_work(Slow(), app, grace="20s") as shift:
        await asyncio.wait_for(writing.wait(), 30)
        shift.worker.hurry()
        await until(lambda: any(running.stop for running in shift.worker._parts.attempts.executor.running))
        go_on.set()
    assert (await show(real_time_store, job_id)).state is JobState.READY
    async with at_work(real_time_store, app):
        view = await seen(real_time_store, job_id)
    assert (view.result, calls) == ('"Ada"', ["Ada"])


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_g3_an_attempt_that_has_lost_its_claim_keeps_nothing_and_is_stopped(
    real_time_store: Store, mode: str
) -> None:
    app = App("sqlite:///unused.db")
    errors: list[BaseException] = []
    robbed = threading.Event()

    def do(name: str) -> str:
        robbed.wait(30)
        return name

    async def in_task(ctx: Context, name: str) -> None:
        try:
            await ctx.step("do", do, name)
        except BaseException as error:
            errors.append(error)
            raise

    def in_thread(ctx: SyncContext, name: str) -> None:
        try:
            ctx.step("do", do, name)
        except BaseException as error:
            errors.append(error)
            raise

    app.job(name="greet")(in_task if mode == "async" else in_thread)
    async with at_work(real_time_store, app, grace="5s") as shift:
        job_id = await enqueue(real_time_store)
        await until(lambda: any(running.begun for running in shift.worker._parts.attempts.executor.running))
        [running] = shift.worker._parts.attempts.executor.running
        await apply(real_time_store, paused(running.claim, Reason.PAUSED, None))
        robbed.set()
        await until(lambda: not shift.worker.running)
        assert shift.told(StaleWrites) == []
    view = await show(real_time_store, job_id)
    assert (view.state, view.failures, await real_time_store.steps([job_id])) == (JobState.PAUSED, 0, {})
    assert "has lost its claim" in str(errors[0]) or not isinstance(errors[0], Exception)


@dataclass
class Page:
    """What a step may well return."""

    title: str
    seen: date
    links: tuple[str, ...] = ()


async def test_a_result_comes_back_as_the_function_declares_it_in_the_first_run_and_in_all_later_ones(
    app: App, box: Sandbox
) -> None:
    seen: list[object] = []

    async def load() -> Page:
        return Page("Home", date(2026, 1, 1), ("a", "b"))

    @app.job
    async def read(ctx: Context) -> None:
        seen.append(await ctx.step("typed", load))
        seen.append(await ctx.step("plain", lambda: (1, 2)))
        seen.append(await ctx.step("made by a lambda", lambda: load()))  # noqa: PLW0108 - the point of the test
        await ctx.sleep("1h")

    await read.enqueue()
    await box.drain(travel=True)
    home = await load()
    once = [home, [1, 2], {"title": "Home", "seen": "2026-01-01", "links": ["a", "b"]}]
    assert seen == once * 2


async def test_repeated_names_are_numbered_in_the_order_of_calls_also_when_they_run_at_once(
    app: App, box: Sandbox
) -> None:
    @app.job
    async def fetch_all(ctx: Context) -> list[int]:
        async def fetch(number: int) -> int:
            for _ in range(3 - number):
                await asyncio.sleep(0)
            return number

        found = await asyncio.gather(*(ctx.step("fetch", fetch, number) for number in range(3)))
        await ctx.sleep("1h")
        async with asyncio.TaskGroup() as group:
            last = group.create_task(ctx.step("fetch", fetch, 3))
        return [*found, last.result()]

    handle = await fetch_all.enqueue()
    await box.drain(travel=True)

    assert await handle.result() == [0, 1, 2, 3]
    steps = (await (await app.desk("me")).job(handle.id)).steps
    assert {step.key: step.result for step in steps if step.key != "sleep"} == {
        "fetch": "0", "fetch#2": "1", "fetch#3": "2", "fetch#4": "3",
    }  # fmt: skip


async def test_f2_tries_of_a_step_are_counted_over_restarts_and_cost_the_job_no_attempt(app: App, box: Sandbox) -> None:
    world = Outside(fetch=2)

    @app.job(retry=Retry.none())
    async def read(ctx: Context) -> str:
        return await ctx.step("fetch", world.fetch, "fetch", retry=EVERY_MINUTE)

    handle = await read.enqueue()
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.reason, view.due_at) == (
        JobState.WAITING,
        "step failed: step fetch: ValueError: fetch failed",
        box.now + timedelta(minutes=1),
    )
    assert (view.failures, await box.attempts(handle)) == (0, [])

    for tries in (1, 2):
        [step] = (await (await app.desk("me")).job(handle.id)).steps
        assert (step.tries, step.note) == (tries, "ValueError: fetch failed")
        box.travel("1m")
        await box.drain()
    assert await handle.result() == "fetch 3"


async def test_after_its_own_tries_the_error_is_raised_and_the_jobs_retry_decides(app: App, box: Sandbox) -> None:
    world = Outside(fetch=5)
    caught: list[str] = []

    @app.job(retry=EVERY_MINUTE)
    async def read(ctx: Context) -> str:
        try:
            return await ctx.step("fetch", world.fetch, "fetch", retry=EVERY_MINUTE)
        except ValueError as error:
            caught.append(str(error))
            raise

    handle = await read.enqueue()
    await box.drain(travel=True)

    assert await handle.result() == "fetch 6"
    assert caught == ["fetch failed"], "three tries, and all three again in the next attempt"
    assert (await box.job(handle)).failures == 1


async def test_verdicts_inside_a_step_are_heard(app: App, box: Sandbox) -> None:
    said: list[Exception] = [Snooze("10m"), RetryAfter("20m"), Permanent("no such site")]

    async def fetch() -> None:
        raise said.pop(0)

    @app.job
    async def read(ctx: Context) -> None:
        await ctx.step("fetch", fetch, retry=EVERY_MINUTE)

    handle = await read.enqueue()
    waits = []
    while (view := await box.job(handle)).state is not JobState.DEAD:
        await box.drain()
        view = await box.job(handle)
        waits.append(None if view.due_at is None else view.due_at - box.now)
        box.travel(waits[-1] or 0)
    assert waits == [timedelta(minutes=10), timedelta(minutes=20), None]
    assert (view.reason, view.last_error) == (Reason.PERMANENT, "perdure.Permanent: no such site")


async def test_a_short_wait_between_tries_stays_in_the_process(real_time_store: Store) -> None:
    app, world = App("sqlite:///unused.db"), Outside(Ada=2)
    soon = Retry(attempts=3, backoff=Backoff.fixed("10ms"), jitter=Jitter.none())

    @app.job(retry=Retry.none())
    async def greet(ctx: Context, name: str) -> str:
        return await ctx.step("fetch", world.fetch, name, retry=soon)

    async with at_work(real_time_store, app) as shift:
        job_id = await enqueue(real_time_store)
        view = await seen(real_time_store, job_id)
    assert (view.state, world.done, shift.worker.finished) == (JobState.SUCCEEDED, ["Ada"] * 3, 1)


async def test_a_try_that_takes_too_long_is_cut(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def read(ctx: Context) -> None:
        await ctx.step("nap", asyncio.sleep, 3_600.0, timeout="10ms")

    @app.job(retry=Retry.none())
    async def block(ctx: Context) -> None:
        await ctx.step("nap", len, "abc", timeout="10ms")  # type: ignore[call-arg, arg-type] # types refuse it, too

    cut, refused = await read.enqueue(), await block.enqueue()
    await box.drain()
    assert (await box.job(cut)).last_error == "TimeoutError: step nap exceeded its time limit of 10ms"
    error = (await box.job(refused)).last_error or ""
    assert "timeout of step 'nap' needs an async function" in error


@pytest.mark.parametrize("limit", ["0s", 0, "-1s", "soon"])
async def test_a_limit_that_leaves_no_time_for_a_try_is_refused_by_name(app: App, box: Sandbox, limit: Any) -> None:
    @app.job(retry=Retry.none())
    async def read(ctx: Context) -> None:
        await ctx.step("nap", asyncio.sleep, 0.0, timeout=limit)

    handle = await read.enqueue()
    await box.drain()
    error = (await box.job(handle)).last_error or ""
    assert error.startswith("perdure.ArgumentError: timeout of step 'nap' ")


def too_much() -> str:
    return "x" * RESULT_LIMIT_BYTES


def not_what_it_says() -> int:
    return "seven"  # type: ignore[return-value] # on purpose


BAD = [
    (object, "step bad returned a value that cannot be stored as JSON"),
    (too_much, f"step bad returned {RESULT_LIMIT_BYTES + 2} bytes as JSON, {RESULT_LIMIT_BYTES} are allowed"),
    (not_what_it_says, "step bad does not fit what not_what_it_says is annotated to return"),
]


@pytest.mark.parametrize(("make", "problem"), BAD, ids=["object", "large", "mistyped"])
async def test_a_result_that_cannot_be_kept_is_refused_by_name_and_the_job_is_kept(
    app: App, box: Sandbox, make: Any, problem: str
) -> None:
    calls: list[int] = []

    @app.job
    async def read(ctx: Context) -> None:
        calls.append(1)
        await ctx.step("bad", make)

    handle = await read.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (view.state, view.reason, len(calls)) == (JobState.DEAD, Reason.PERMANENT, 1)
    assert (view.last_error or "").startswith(f"perdure.StepError: {problem}")


async def test_a_changed_handler_that_meets_old_steps_is_reported_which_step_differs(app: App, box: Sandbox) -> None:
    version = 1

    async def load() -> str:
        return "seven"

    async def load_number() -> int:
        return 7

    @app.job
    async def read(ctx: Context, change: str) -> None:
        if version == 1:
            await ctx.step("load", load)
        elif change == "kind":
            await ctx.poll("load", load)
        elif change == "type":
            await ctx.step("load", load_number)
        await ctx.sleep("1h")

    handles = [await read.enqueue(change) for change in ("kind", "type", "gone")]
    await box.drain()
    version = 2
    await box.drain(travel=True)
    kind, kinds_type, gone = [await box.job(handle) for handle in handles]
    assert (kind.state, kinds_type.state, gone.state) == (JobState.DEAD, JobState.DEAD, JobState.SUCCEEDED)
    assert "step load was stored as a call (ctx.step) and is now a poll (ctx.poll)" in (kind.last_error or "")
    assert "step load does not fit what" in (kinds_type.last_error or "")
    assert "give the new step another name" in (kinds_type.last_error or "")
    assert gone.warnings == ("stored steps were not used (was the handler changed?): load",)


def refusal_of(call: Any) -> str:
    with pytest.raises(ConflictError) as refused:
        call()
    return str(refused.value)


async def test_g5_nothing_is_kept_apart_once_a_transaction_is_open(app: App, box: Sandbox) -> None:
    """It would be kept even if the transaction is undone."""

    @app.job
    async def pay(ctx: Context) -> None:
        await ctx.step("before", len, "abc")
        async with ctx.transaction():
            assert refusal_of(lambda: ctx.sleep("1h")).startswith("ctx.sleep() after ctx.transaction()")
            assert refusal_of(lambda: ctx.wait_for("x")).startswith("ctx.wait_for() after ctx.transaction()")

    await pay.enqueue()
    assert (await box.drain(raising=True)).succeeded == 1


async def test_a_context_without_a_worker_cannot_take_steps(store: Store) -> None:
    context = Context(await start(store), StopFlag())
    assert refusal_of(lambda: context.step("x", len, "abc")).endswith("ctx.step() needs a worker")
