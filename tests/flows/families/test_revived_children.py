"""Children that are given a new life while their parent waits, has given up, or has gone on."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.builders.children import ONCE, Gate, child_of, gated, put
from tests.support.builders.jobs import HOUR, MINUTE, only, show
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import App, Backoff, ChildResult, Context, Jitter, JobState, Retry
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By
from perdure.events import FamilySettled
from perdure.storage.port import Store

AT_ONCE = Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none())


@pytest.fixture
def app() -> App:
    return App("sqlite:///never-opened.db")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def requeued(store: Store, gate: Gate, parent: JobId, number: int) -> JobId:
    """Wait until the child of this number is dead, and give it a new life; it waits again to be told what to do."""
    await until(lambda: number in gate.runs)
    child = await child_of(store, parent, number)
    assert (await seen(store, child.id)).state is JobState.DEAD
    del gate.orders[number]
    assert await store.requeue(only(child.id), By("test"), 1) == [child.id]
    await until(lambda: gate.runs.count(number) == 2)
    return child.id


async def test_a_parent_that_waits_for_others_waits_for_the_new_life_too(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    got: list[ChildResult[int]] = []

    @app.job
    async def parent(ctx: Context) -> int:
        got[:] = await ctx.gather([child.call(n) for n in (0, 1)], failures="collect")
        return sum(result.ok for result in got)

    job_id = await put(store, parent.call())
    gate.tell(0, order="die")
    async with at_work(store, app) as shift:
        await requeued(store, gate, job_id, 0)
        gate.tell(1)
        assert (await seen(store, (await child_of(store, job_id, 1)).id)).state is JobState.SUCCEEDED
        view = await show(store, job_id)
        assert (view.state, view.awaits, view.due_at) == (JobState.WAITING, "family:gather", None)
        gate.tell(0)
        view = await seen(store, job_id)

    assert view.result == "2"
    assert [(result.ok, result.value, result.error) for result in got] == [(True, 0, None), (True, 10, None)]
    assert [(event.succeeded, event.because) for event in shift.told(FamilySettled)] == [(2, "all are final")]


async def test_a_quorum_that_a_new_life_brings_within_reach(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(n) for n in (0, 1, 2)], quorum=2)

    job_id = await put(store, parent.call())
    gate.tell(0, order="die")
    async with at_work(store, app):
        await requeued(store, gate, job_id, 0)
        gate.tell(1, order="die")
        assert (await seen(store, (await child_of(store, job_id, 1)).id)).state is JobState.DEAD
        gate.tell(2)
        assert (await seen(store, (await child_of(store, job_id, 2)).id)).state is JobState.SUCCEEDED
        assert (await show(store, job_id)).state is JobState.WAITING
        gate.tell(0)
        view = await seen(store, job_id)

    assert (view.state, view.result) == (JobState.SUCCEEDED, "[0,20]")


async def test_a_parent_that_is_to_be_tried_again_waits_for_the_new_life(
    store: Store, app: App, gate: Gate, clock: ManualClock
) -> None:
    child = gated(app, gate)

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("1h"), jitter=Jitter.none()))
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(0)])

    job_id = await put(store, parent.call())
    gate.tell(0, order="die")
    async with at_work(store, app):
        await seen(store, job_id, JobState.RETRYING)
        await requeued(store, gate, job_id, 0)
        clock.move(HOUR + MINUTE)
        await seen(store, job_id, JobState.WAITING)
        gate.tell(0)
        view = await seen(store, job_id)

    assert (view.state, view.result, view.failures) == (JobState.SUCCEEDED, "[0]", 1)


async def test_a_parent_that_has_gone_on_sees_what_it_saw(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    got: list[list[ChildResult[int]]] = []
    on = asyncio.Event()

    @app.job(retry=AT_ONCE)
    async def parent(ctx: Context) -> int:
        got.append(await ctx.gather([child.call(0), child.call(1)], failures="collect"))
        if ctx.attempt == 1:
            await on.wait()
            raise ValueError("once more")
        return sum(result.ok for result in got[-1])

    job_id = await put(store, parent.call())
    gate.tell(0, order="die")
    gate.tell(1)
    async with at_work(store, app):
        await until(lambda: got)
        again = await requeued(store, gate, job_id, 0)
        gate.tell(0)
        assert (await seen(store, again)).state is JobState.SUCCEEDED
        on.set()
        view = await seen(store, job_id)

    assert view.result == "1"
    assert got[1] == got[0]
    assert (got[0][0].state, "number 0 is broken" in (got[0][0].error or "")) == (JobState.DEAD, True)


async def test_a_parent_whose_time_was_up_is_mended_by_a_new_life_of_its_late_children_and_then_its_own(
    store: Store, app: App, gate: Gate, clock: ManualClock
) -> None:
    child = gated(app, gate)

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(0), child.call(1)], within="1h")

    job_id = await put(store, parent.call())
    gate.tell(0)
    async with at_work(store, app):
        await seen(store, job_id, JobState.WAITING)
        assert (await seen(store, (await child_of(store, job_id, 0)).id)).state is JobState.SUCCEEDED
        clock.move(HOUR + MINUTE)
        view = await seen(store, job_id)
        assert "perdure.ChildrenTimeout: 1 of 2 children of gather" in (view.last_error or "")
        late = await child_of(store, job_id, 1)
        assert (late.state, late.reason) == (JobState.CANCELLED, "cancelled: parent job died")
        assert await store.requeue(only(job_id), By("test"), 1) == [job_id]
        view = await seen(store, job_id)
        assert f"job {late.id} is cancelled: parent job died" in (view.last_error or "")

        assert await store.requeue(only(late.id), By("test"), 1) == [late.id]
        assert await store.requeue(only(job_id), By("test"), 1) == [job_id]
        view = await seen(store, job_id, JobState.WAITING)
        assert view.due_at is not None
        assert HOUR - MINUTE < view.due_at - clock.now() < HOUR + MINUTE
        gate.tell(1)
        view = await seen(store, job_id)

    assert (view.state, view.result) == (JobState.SUCCEEDED, "[0,10]")


async def test_a_parent_with_a_new_life_of_its_own_has_its_whole_time_again(
    store: Store, app: App, gate: Gate, clock: ManualClock
) -> None:
    child = gated(app, gate)

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(0)], within="1h")

    job_id = await put(store, parent.call())
    gate.tell(0, order="die")
    async with at_work(store, app):
        assert (await seen(store, job_id)).state is JobState.DEAD
        clock.move(2 * HOUR)
        await requeued(store, gate, job_id, 0)
        await store.requeue(only(job_id), By("test"), 1)
        view = await seen(store, job_id, JobState.WAITING, JobState.DEAD)
        assert (view.state, view.awaits) == (JobState.WAITING, "family:gather")
        assert view.due_at is not None
        assert HOUR - MINUTE < view.due_at - clock.now() <= HOUR
        clock.move(HOUR + MINUTE)
        view = await seen(store, job_id)

    assert "perdure.ChildrenTimeout: 1 of 1 children of gather are not finished" in (view.last_error or "")
