"""What becomes of parents that wait (C5), are deleted (C6, C7) or end (C8), under real workers on both engines."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.builders.children import Gate, child_of, gated, put
from tests.support.builders.jobs import claim_one, employ, only, show
from tests.support.databases.behind import query
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import (
    App,
    ConflictError,
    Context,
    JobState,
)
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.transition import released
from perdure.domain.operate.audit import By
from perdure.events import FamilyRecovered, FamilyRefused, FamilySettled
from perdure.operate.desk import Desk
from perdure.storage.port import Store


@pytest.fixture
def app() -> App:
    return App("sqlite:///never-opened.db")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_c5_no_worker_is_held_and_the_parent_wakes_once(store: Store, app: App) -> None:
    """A worker with one slot runs a parent and its fifty children, and the parent's handler twice in all."""
    runs: list[str] = []

    @app.job
    async def load(number: int) -> int:
        runs.append("child")
        return number

    @app.job
    async def two_phases(ctx: Context) -> int:
        runs.append("parent")
        numbers = await ctx.step("ingest", lambda: list(range(50)))
        loaded = await ctx.gather([load.call(n) for n in numbers], name="aggregate")
        return sum(loaded)

    job_id = await put(store, two_phases.call())
    async with at_work(store, app, concurrency=1):
        view = await seen(store, job_id)

    assert view.result == str(sum(range(50)))
    assert runs == ["parent", *["child"] * 50, "parent"]
    assert (view.failures, view.crashes) == (0, 0)


async def test_c5_a_waiting_parent_says_what_it_waits_for(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1), child.call(2)])

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        view = await seen(store, job_id, JobState.WAITING)
        assert (view.reason, view.awaits, view.worker) == ("waiting for children", "family:gather", None)
        assert (await child_of(store, job_id, 0)).parent == job_id
        detail = await Desk(store, "test").job(job_id)
        assert [(family.key, family.total, family.succeeded) for family in detail.families] == [("gather", 2, 0)]
        gate.tell(1, 2)
        assert (await seen(store, job_id)).result == "[10,20]"


async def test_c5_a_parent_that_comes_back_while_its_children_run_stays_in_aggregate(
    store: Store, app: App, gate: Gate
) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1)])

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        await seen(store, job_id, JobState.WAITING)
        await store.run_now(only(job_id), By("test"), 1)
        recovered = await until(lambda: shift.told(FamilyRecovered))
        assert [(event.job_id, event.decision, event.because, event.children) for event in recovered] == [
            (job_id, "stays in aggregate", "its children are there", 1)
        ]
        gate.tell(1)
        assert (await seen(store, job_id)).result == "[10]"
    assert gate.runs == [1]


async def test_c5_a_parent_recovered_without_children_goes_back_to_ingest(store: Store, app: App) -> None:
    """Its process died after it had written down that it spawns, and before it did."""

    @app.job
    async def load(number: int) -> int:
        return number

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([load.call(1), load.call(2)])

    job_id = await put(store, parent.call())
    claim = await claim_one(store, await employ(store))
    begun = StepRecord(key="gather", kind=StepKind.FAMILY, state=StepState.BEGUN, tries=1, begun_at=claim.claimed_at)
    assert await store.save_steps([StepWrite(claim, begun)]) == [True]
    await store.acknowledge([released(claim)])

    async with at_work(store, app) as shift:
        view = await seen(store, job_id)

    assert view.result == "[1,2]"
    [told] = shift.told(FamilyRecovered)
    assert (told.job_id, told.decision, told.because, told.children) == (
        job_id,
        "back to ingest",
        "it has no children",
        0,
    )
    assert [family.key for family in await store.families(job_id)] == ["gather#again2"]


async def test_c5_a_parent_whose_children_cannot_be_read_goes_back_to_ingest(
    store: Store, engine_url: str, app: App, gate: Gate
) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1), child.call(2)])

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        await seen(store, job_id, JobState.WAITING)
        await until(lambda: len(gate.runs) == 2)
        query(engine_url, "DELETE FROM {child}")
        query(engine_url, "UPDATE {family} SET succeeded = 2")
        await store.run_now(only(job_id), By("test"), 1)
        [told] = await until(lambda: shift.told(FamilyRecovered))
        assert (told.decision, told.because) == ("back to ingest", "its children cannot be read")
        gate.tell(1, 2)
        view = await seen(store, job_id)

    assert view.result == "[10,20]"
    assert sorted(gate.runs) == [1, 1, 2, 2]


async def test_c6_a_deleted_parent_takes_its_active_children_with_it_and_leaves_the_finished(
    store: Store, engine_url: str, app: App, gate: Gate
) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1), child.call(2), child.using(delay="1h").call(3)])

    job_id = await put(store, parent.call())
    gate.tell(1)
    async with at_work(store, app):
        await seen(store, job_id, JobState.WAITING)
        await until(lambda: len(gate.runs) == 2)
        done, running, waiting = [one.job_id for one in await store.children(job_id, "gather")]
        assert (await seen(store, done)).state is JobState.SUCCEEDED
        changed = await Desk(store, "ops").delete(job_id)
        assert changed.ids == (job_id,)
        assert (await seen(store, waiting)).reason == "cancelled: parent job deleted"
        assert (await seen(store, running)).reason == "cancelled: parent job deleted"
        gate.tell(2)

    assert await store.job(job_id) is None
    assert (await show(store, done)).state is JobState.SUCCEEDED
    assert (await show(store, running)).result is None
    audited = query(engine_url, "SELECT actor, action FROM {audit} ORDER BY 1")
    assert ("ops", "delete") in [tuple(row) for row in audited]


async def test_c7_a_parent_deleted_while_it_runs_cannot_spawn(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    expected = "parent job deleted during execution"
    errors: list[str] = []

    @app.job
    async def parent(ctx: Context) -> list[int]:
        await store.delete(only(ctx.job_id), By("ops"), 1)
        try:
            return await ctx.gather([child.call(1)])
        except ConflictError as error:
            errors.append(str(error))
            raise

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        await until(lambda: errors)

    assert errors == [f"{expected}: no children were stored"]
    assert [event.because for event in shift.told(FamilyRefused)] == [expected]
    assert await store.job(job_id) is None
    assert gate.runs == []
    assert [count for count in await store.counts() if count.jobs] == []


async def test_c8_children_that_are_kept_go_on_when_their_parent_is_done(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> None:
        await ctx.spawn([child.call(1)], on_end="keep")
        await ctx.spawn([child.call(2)], name="lost")

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        assert (await seen(store, job_id)).state is JobState.SUCCEEDED
        assert (await seen(store, (await child_of(store, job_id, 0, "lost")).id)).state is JobState.CANCELLED
        gate.tell(1)
        kept = await seen(store, (await child_of(store, job_id, 0, "spawn")).id)
    assert (kept.state, kept.result) == (JobState.SUCCEEDED, "10")


async def test_c8_the_late_result_of_a_running_child_is_ignored(store: Store, app: App) -> None:
    started, end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.job
    async def stubborn() -> str:
        started.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "late"

    @app.job
    async def parent(ctx: Context) -> None:
        await ctx.spawn([stubborn.call()])
        await started.wait()

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        assert (await seen(store, job_id)).state is JobState.SUCCEEDED
        child = await child_of(store, job_id, 0, "spawn")
        view = await seen(store, child.id)
        end.set()
        await ended.wait()

    assert view.state is JobState.CANCELLED
    after = await show(store, child.id)
    assert (after.state, after.result) == (JobState.CANCELLED, None)


async def test_c8_a_quorum_is_enough_and_the_rest_is_cancelled_when_the_parent_is_done(
    store: Store, app: App, gate: Gate
) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(n) for n in (1, 2, 3)], quorum=2)

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        await until(lambda: len(gate.runs) == 3)
        await seen(store, job_id, JobState.WAITING)
        gate.tell(3)
        await seen(store, (await child_of(store, job_id, 2)).id)
        assert (await show(store, job_id)).state is JobState.WAITING
        gate.tell(1)
        view = await seen(store, job_id)
        late = await seen(store, (await child_of(store, job_id, 1)).id)
        gate.tell(2)

    assert view.result == "[10,30]"
    assert [event.because for event in shift.told(FamilySettled)] == ["quorum reached"]
    assert late.state is JobState.CANCELLED
    assert (await child_of(store, job_id, 1)).state is JobState.CANCELLED
    assert late.reason == "cancelled: parent job completed"


async def test_c5_a_parent_that_gathers_for_the_first_time_has_not_come_back(
    store: Store, app: App, gate: Gate
) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather(await ctx.spawn([child.call(1)]))

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        await seen(store, job_id, JobState.WAITING)
        gate.tell(1)
        assert (await seen(store, job_id)).result == "[10]"
    assert shift.told(FamilyRecovered) == []
