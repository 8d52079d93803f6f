"""Waiting costs no worker, outlives restarts, and is over when it should be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue, show
from tests.support.working import at_work, seen

from perdure import (
    App,
    Approval,
    ArgumentError,
    ConflictError,
    Context,
    EventTimeout,
    JobState,
    NotFoundError,
    Retry,
    SyncContext,
)
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.testing import Sandbox


async def test_d5_a_sleep_is_slept_once_however_often_the_handler_is_run(app: App, box: Sandbox) -> None:
    woken: list[timedelta] = []
    begun = box.now

    @app.job
    async def nap(ctx: Context) -> None:
        await ctx.sleep("1h")
        await ctx.sleep("30m")
        woken.append(box.now - begun)

    handle = await nap.enqueue()
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.reason, view.due_at) == (JobState.WAITING, Reason.SLEEPING, begun + timedelta(hours=1))
    drained = await box.drain(travel=True)
    assert (woken, drained.attempts, (await box.job(handle)).failures) == ([timedelta(minutes=90)], 2, 0)


async def test_d5_a_days_wait_over_three_restarts(store: Store, clock: ManualClock) -> None:
    app = App("sqlite:///unused.db")
    runs: list[str] = []

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        await ctx.step("before", runs.append, "before")
        await ctx.sleep("1d")
        await ctx.step("after", runs.append, "after")
        return name

    job_id = await enqueue(store)
    begun = clock.now()
    for hours in (0, 8, 8):
        clock.move(timedelta(hours=hours))
        async with at_work(store, app):
            view = await seen(store, job_id, JobState.WAITING)
        assert view.due_at is not None
        assert abs(view.due_at - begun - timedelta(days=1)) < timedelta(seconds=30)
    clock.move(timedelta(hours=8, minutes=1))
    async with at_work(store, app):
        view = await seen(store, job_id)
    assert (view.state, view.failures, runs) == (JobState.SUCCEEDED, 0, ["before", "after"])


async def test_a_short_sleep_stays_in_the_process(real_time_store: Store) -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        await ctx.sleep("20ms")
        return name

    async with at_work(real_time_store, app) as shift:
        job_id = await enqueue(real_time_store)
        await seen(real_time_store, job_id)
        assert shift.worker.finished == 1
    [step] = (await real_time_store.steps([job_id]))[job_id]
    assert (step.key, step.state.value) == ("sleep", "done")


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_g9_a_worker_that_closes_parks_what_sleeps_in_it(real_time_store: Store, mode: str) -> None:
    app = App("sqlite:///unused.db")
    asleep = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def in_task(ctx: Context, name: str) -> str:
        asleep.set()
        await ctx.sleep("4s")
        return name

    def in_thread(ctx: SyncContext, name: str) -> str:
        loop.call_soon_threadsafe(asleep.set)
        ctx.sleep("4s")
        return name

    app.job(name="greet")(in_task if mode == "async" else in_thread)
    job_id = await enqueue(real_time_store)
    async with at_work(real_time_store, app, stop_timeout="20s") as shift:
        await asyncio.wait_for(asleep.wait(), 30)
        await until_kept(real_time_store, job_id)
        assert await shift.stopped() < 3
    view = await show(real_time_store, job_id)
    assert (view.state, view.reason, view.failures) == (JobState.WAITING, Reason.SLEEPING, 0)


async def until_kept(store: Store, job_id: JobId) -> None:
    async with asyncio.timeout(30):
        while not await store.steps([job_id]):
            await asyncio.sleep(0.01)


async def test_cancellation_is_honoured_inside_a_short_wait_and_a_long_one(real_time_store: Store) -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.sleep("4s" if name == "short" else "1h")

    async with at_work(real_time_store, app):
        short = await enqueue(real_time_store, args='{"name":"short"}')
        long = await enqueue(real_time_store, args='{"name":"long"}')
        await until_kept(real_time_store, short)
        await seen(real_time_store, long, JobState.WAITING)
        await Desk(real_time_store, "me").cancel([short, long], why="enough")
        views = [await seen(real_time_store, job_id) for job_id in (short, long)]
    assert [view.state for view in views] == [JobState.CANCELLED] * 2


async def test_an_event_wakes_who_waits_and_the_first_payload_is_kept(app: App, box: Sandbox) -> None:
    @app.job
    async def ship(ctx: Context, order: int) -> tuple[dict[str, int], dict[str, int]]:
        return await ctx.wait_for(f"paid:{order}"), await ctx.wait_for(f"paid:{order}")

    handle = await ship.enqueue(42)
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.reason, view.awaits, view.due_at) == (
        JobState.WAITING, Reason.AWAITING_EVENT, "event:paid:42", None,
    )  # fmt: skip
    first, second = await app.emit("paid:42", {"sum": 3}), await app.emit("paid:42", {"sum": 4})
    assert (first.is_first, first.woken, second.is_first, second.woken) == (True, 1, False, 0)
    assert second.payload == '{"sum":3}'
    drained = await box.drain()
    assert (await handle.result(), drained.attempts) == (({"sum": 3}, {"sum": 3}), 1)


async def test_emitting_before_waiting_is_no_race(app: App, box: Sandbox) -> None:
    @app.job
    def ship(ctx: SyncContext) -> Any:
        return ctx.wait_for("paid")

    await app.emit("paid")
    handle = await ship.enqueue()
    drained = await box.drain()
    assert (drained.attempts, drained.succeeded, await handle.result()) == (1, 1, None)


async def test_an_event_that_is_not_emitted_ends_in_a_timeout_that_is_stored(app: App, box: Sandbox) -> None:
    seen: list[str] = []

    @app.job
    async def ship(ctx: Context, careful: bool) -> str:
        try:
            await ctx.wait_for("paid", timeout="1h")
        except EventTimeout as error:
            if not careful:
                raise
            seen.append(str(error))
        await ctx.sleep("1h")
        return "gave up"

    careful, careless = await ship.enqueue(True), await ship.enqueue(False)
    await box.drain(travel="1h30m")
    await app.emit("paid")
    await box.drain(travel=True)
    told = "event 'paid' did not arrive within 1h"
    assert (await careful.result(), seen) == ("gave up", [told] * 2), "also after it was emitted too late"
    view = await box.job(careless)
    assert (view.state, view.reason, view.last_error) == (
        JobState.DEAD, Reason.PERMANENT, f"perdure.EventTimeout: {told}",
    )  # fmt: skip


async def test_a_requeued_job_waits_again_for_what_did_not_come(app: App, box: Sandbox) -> None:
    @app.job
    async def ship(ctx: Context) -> int:
        return await ctx.wait_for("paid", timeout="1h", as_type=int)

    handle = await ship.enqueue()
    await box.drain(travel=True)
    assert (await box.job(handle)).state is JobState.DEAD
    box.travel("1h")
    await (await app.desk("ops")).requeue(handle.id)
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.due_at) == (JobState.WAITING, box.now + timedelta(hours=1))
    await app.emit("paid", 7)
    await box.drain()
    assert await handle.result() == 7


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_an_event_wakes_a_job_of_a_real_worker_soon(real_time_store: Store, mode: str) -> None:
    app = App("sqlite:///unused.db")

    async def in_task(ctx: Context, name: str) -> Any:
        return await ctx.wait_for(name, "1h")

    def in_thread(ctx: SyncContext, name: str) -> Any:
        return ctx.wait_for(name, "1h")

    app.job(name="greet")(in_task if mode == "async" else in_thread)
    async with at_work(real_time_store, app, poll="30s"):
        job_id = await enqueue(real_time_store)
        real_time_store.ring(["default"])
        await seen(real_time_store, job_id, JobState.WAITING)
        emission = await real_time_store.emit("Ada", "[1]", By("me"))
        real_time_store.ring(["default"])
        async with asyncio.timeout(5):
            view = await seen(real_time_store, job_id)
    assert (emission.woken, view.result, view.failures) == (1, "[1]", 0)


async def test_a_payload_is_read_as_the_type_that_is_asked_for(app: App, box: Sandbox) -> None:
    @app.job
    async def ship(ctx: Context) -> bool:
        answer = await ctx.wait_for("said", as_type=Approval)
        return answer.approved

    handle = await ship.enqueue()
    await app.emit("said", Approval(approved=True, by="me"))
    await box.drain()
    assert await handle.result() is True

    @app.job
    async def misread(ctx: Context) -> None:
        await ctx.wait_for("said", as_type=int)

    handle_2 = await misread.enqueue()
    await box.drain()
    view = await box.job(handle_2)
    assert view.state is JobState.DEAD
    assert "step event:said does not fit int" in (view.last_error or "")


async def test_a16_a_person_is_asked_and_answers(app: App, box: Sandbox) -> None:
    @app.job
    async def renew(ctx: Context) -> str:
        answer = await ctx.approval("renewal", timeout="168h")
        return f"{answer.approved} {answer.by} {answer.note}"

    handle, early = await renew.enqueue(), await renew.enqueue()
    desk = await app.desk("ops")
    await desk.answer(early.id, "renewal", approved=False, note="too dear")
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.due_at) == (JobState.WAITING, box.now + timedelta(hours=168))
    given = await desk.answer(handle.id, "renewal", approved=True)
    assert given == Approval(approved=True, by="ops")
    with pytest.raises(ConflictError, match="was answered already: approved by ops"):
        await desk.answer(handle.id, "renewal", approved=False)
    await box.drain()
    assert (await handle.result(), await early.result()) == ("True ops None", "False ops too dear")
    with pytest.raises(ConflictError, match="is succeeded: it asks nothing any more"):
        await desk.answer(handle.id, "renewal", approved=True)
    with pytest.raises(NotFoundError):
        await desk.answer("01890000-0000-7000-8000-000000000000", "renewal", approved=True)


async def test_a16_an_approval_that_is_not_given_expires(app: App, box: Sandbox) -> None:
    @app.job
    async def renew(ctx: Context) -> None:
        await ctx.approval("renewal", timeout="168h")

    handle = await renew.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (view.state, view.finished_at) == (JobState.DEAD, view.created_at + timedelta(hours=168))
    assert view.last_error == "perdure.EventTimeout: 'renewal' was not answered within 7d"


async def test_several_waits_at_once_park_together_and_a_step_beside_them_is_finished_first(
    app: App, box: Sandbox
) -> None:
    ended: list[str] = []

    @app.job
    async def watch(ctx: Context) -> list[Any]:
        async def slow(name: str) -> str:
            for _ in range(50):
                await asyncio.sleep(0)
            ended.append(name)
            return name

        async def chain() -> str:
            first = await ctx.step("first", slow, "first")
            return await ctx.step("second", slow, f"{first} second")

        found = await asyncio.gather(ctx.sleep("1h"), chain(), ctx.wait_for("a"), ctx.wait_for("b", "3h"))
        return list(found)

    handle = await watch.enqueue()
    await box.drain()
    assert ended == ["first", "first second"]
    view = await box.job(handle)
    assert (view.state, view.awaits) == (JobState.WAITING, "event:a")
    await app.emit("b", 2)
    await app.emit("a", 1)
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.reason) == (JobState.WAITING, Reason.SLEEPING)
    await box.drain(travel=True)
    assert await handle.result() == [None, "first second", 1, 2]
    assert ended == ["first", "first second"]


@pytest.mark.parametrize("first", ["a", "b", "children", "approval"])
async def test_whichever_of_several_waits_is_over_first_wakes_the_job_at_once(
    app: App, box: Sandbox, first: str
) -> None:
    got: list[str] = []

    @app.job
    async def load(ctx: Context) -> str:
        return await ctx.wait_for("loaded", as_type=str)

    @app.job
    async def watch(ctx: Context) -> list[Any]:
        async def noted(name: str, wait: Awaitable[Any]) -> Any:
            found = await wait
            if name not in got:
                got.append(name)
            return found

        found = await asyncio.gather(
            noted("a", ctx.wait_for("a")),
            noted("b", ctx.wait_for("b", "3h")),
            noted("children", ctx.gather([load.call()])),
            noted("approval", ctx.approval("ship")),
        )
        return list(found)

    handle = await watch.enqueue()
    await box.drain()
    view = await box.job(handle)
    awaited = {"event:a", "event:b", "family:gather", f"event:approval:{handle.id}:ship"}
    assert (view.state, {view.awaits, *view.also_awaits}) == (JobState.WAITING, awaited)
    assert view.due_at == view.created_at + timedelta(hours=3)
    order = [first, *(name for name in ("a", "b", "children", "approval") if name != first)]
    for count, name in enumerate(order, 1):
        if name == "approval":
            await (await app.desk("boss")).answer(handle.id, "ship", approved=True)
        else:
            await app.emit("loaded" if name == "children" else name, name)
        await box.drain()
        assert got == order[:count]
    a, b, children, answer = await handle.result()
    assert (a, b, children, answer["approved"]) == ("a", "b", ["children"], True)


async def test_a_handler_that_catches_everything_is_parked_all_the_same(app: App, box: Sandbox) -> None:
    calls: list[str] = []

    @app.job
    async def stubborn(ctx: Context) -> str:
        try:
            await ctx.sleep("1h")
        except Exception:  # noqa: BLE001 - a park is none
            calls.append("caught")
        await asyncio.gather(ctx.sleep("1h"), return_exceptions=True)
        calls.append("went on")
        return "done"

    handle = await stubborn.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (calls, await handle.result()) == (["went on", "went on"], "done")
    assert view.finished_at == view.created_at + timedelta(hours=2)


@pytest.mark.parametrize("event", ["", "a#b", "x" * 300])
async def test_an_event_name_that_cannot_be_kept_is_refused(app: App, box: Sandbox, event: str) -> None:
    @app.job(retry=Retry.none())
    async def ship(ctx: Context) -> None:
        await ctx.wait_for(event)

    with pytest.raises(ValueError, match=r"^event must"):
        await app.emit(event)
    handle = await ship.enqueue()
    await box.drain()
    assert (await box.job(handle)).state is JobState.DEAD


async def test_an_answer_cannot_be_emitted_like_any_event(app: App, box: Sandbox) -> None:
    """It would name an approver, although none has answered."""

    @app.job
    async def ship(ctx: Context) -> bool:
        return (await ctx.approval("ship")).approved

    handle = await ship.enqueue()
    await box.drain()
    with pytest.raises(ArgumentError, match=r"desk\.answer, or `perdure approve`"):
        await app.emit(f"approval:{handle.id}:ship", {"approved": True, "by": "boss"})
    assert (await box.job(handle)).state is JobState.WAITING


async def test_an_event_that_cannot_be_waited_for_is_called_one(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def ship(ctx: Context) -> None:
        await ctx.wait_for("paid#2")

    handle = await ship.enqueue()
    await box.drain()
    assert "event must not contain '#'" in ((await box.job(handle)).last_error or "")
