"""Parents and children, under real workers on both engines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tests.support.builders.children import ONCE, Gate, child_of, gated, put
from tests.support.builders.jobs import HOUR, MINUTE, only
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import (
    App,
    Backoff,
    ChildrenFailed,
    ChildrenTimeout,
    Context,
    Jitter,
    JobFilter,
    JobState,
    Page,
    Retry,
    StoreUnavailable,
    SyncContext,
)
from perdure.clock import ManualClock
from perdure.domain.flows.flow import NewFamily
from perdure.domain.jobs.job import Claim
from perdure.domain.operate.audit import By
from perdure.events import FamilySettled, FamilySpawned, StoreTrouble
from perdure.flows.families.family import ChildResult
from perdure.storage.port import Store

AT_ONCE = Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none())


@dataclass
class Part:
    """What a child returns."""

    number: int
    size: int


@pytest.fixture
def app() -> App:
    return App("sqlite:///never-opened.db")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_results_come_in_the_order_of_calls_and_as_they_were_declared(store: Store, app: App) -> None:
    got: list[Any] = []

    @app.job
    async def load(number: int) -> Part:
        return Part(number, number * number)

    @app.job
    async def plain(number: int):  # type: ignore[no-untyped-def] # noqa: ANN202 - that is what it is about
        return {"number": number}

    @app.job
    async def parent(ctx: Context) -> int:
        parts = await ctx.gather(load.call(n) for n in range(5))
        got.extend(parts)
        got.extend(await ctx.gather([plain.call(7)]))
        return sum(part.size for part in parts)

    job_id = await put(store, parent.call())
    async with at_work(store, app) as shift:
        view = await seen(store, job_id)

    assert view.result == "30"
    assert got[-6:] == [*(Part(n, n * n) for n in range(5)), {"number": 7}]
    assert [(event.family, event.children) for event in shift.told(FamilySpawned)] == [("gather", 5), ("gather#2", 1)]
    assert [event.because for event in shift.told(FamilySettled)] == ["all are final"] * 2


async def test_a_sync_handler_gathers_without_await(store: Store, app: App) -> None:
    @app.job
    def double(number: int) -> int:
        return number * 2

    @app.job
    def parent(ctx: SyncContext) -> list[int]:
        first = ctx.gather(ctx.spawn([double.call(1)]))
        second = ctx.gather([double.call(2), double.call(3)], name="more")
        return [*first, *second]

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        view = await seen(store, job_id)

    assert view.result == "[2,4,6]"


async def test_failed_children_fail_their_parent_and_are_not_run_again_by_its_retry(
    store: Store, app: App, gate: Gate
) -> None:
    child = gated(app, gate)
    raised: list[ChildrenFailed] = []

    @app.job(retry=AT_ONCE)
    async def parent(ctx: Context) -> list[int]:
        try:
            return await ctx.gather([child.call(n) for n in (1, 2, 3)])
        except ChildrenFailed as error:
            raised.append(error)
            raise

    job_id = await put(store, parent.call())
    gate.tell(1, 3)
    gate.tell(2, order="die")
    async with at_work(store, app):
        view = await seen(store, job_id)

    assert (view.state, view.failures) == (JobState.DEAD, 3)
    assert "perdure.ChildrenFailed: 1 of 3 children of gather failed: job " in (view.last_error or "")
    assert "number 2 is broken" in (view.last_error or "")
    assert sorted(gate.runs) == [1, 2, 3]
    assert len(raised) == 3
    assert raised[0].results == (10, None, 30)
    [failed] = raised[0].failed
    assert (failed.number, failed.state) == (1, "dead")
    assert failed.job_id == (await child_of(store, job_id, 1)).id


async def test_once_dead_children_are_requeued_the_requeued_parent_goes_on(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        got = await ctx.gather([child.call(n) for n in (1, 2)])
        assert await ctx.step("seen", lambda: got) == got
        return got

    job_id = await put(store, parent.call())
    gate.tell(1)
    gate.tell(2, order="die")
    async with at_work(store, app):
        assert (await seen(store, job_id)).state is JobState.DEAD
        dead = await child_of(store, job_id, 1)
        del gate.orders[2]
        await store.requeue(only(dead.id), By("test"), 1)
        await store.requeue(only(job_id), By("test"), 1)
        view = await seen(store, job_id, JobState.WAITING, JobState.DEAD)
        assert (view.state, view.reason) == (JobState.WAITING, "waiting for children")
        gate.tell(2)
        assert (await seen(store, dead.id)).state is JobState.SUCCEEDED
        view = await seen(store, job_id)

    assert (view.state, view.result) == (JobState.SUCCEEDED, "[10,20]")
    assert gate.runs == [1, 2, 2]


async def test_collect_sees_successes_and_failures(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    got: list[ChildResult[int]] = []

    @app.job
    async def parent(ctx: Context) -> int:
        got[:] = await ctx.gather([child.call(n) for n in (1, 2, 3)], failures="collect")
        return sum(result.ok for result in got)

    job_id = await put(store, parent.call())
    gate.tell(1)
    gate.tell(2, order="die")
    async with at_work(store, app):
        await seen(store, job_id, JobState.WAITING)
        third = await child_of(store, job_id, 2)
        await store.cancel(only(third.id), By("test", "too old"), 1)
        view = await seen(store, job_id)

    assert view.result == "1"
    assert [(result.ok, result.value, result.state) for result in got] == [
        (True, 10, JobState.SUCCEEDED),
        (False, None, JobState.DEAD),
        (False, None, JobState.CANCELLED),
    ]
    assert "number 2 is broken" in (got[1].error or "")
    assert "too old" in (got[2].error or "")
    assert got[2].job_id == third.id


async def test_e4_collect_says_which_children_are_done_with_warnings(store: Store, app: App) -> None:
    """In the attempt that sees them first, and in a later one, which finds what was kept."""
    got: list[list[ChildResult[int]]] = []

    @app.job
    async def audit(ctx: Context, number: int) -> int:
        async def take_screenshots() -> None:
            raise OSError("the browser is gone")

        if number == 2:
            await ctx.step("screenshots", take_screenshots, optional=True)
        return number

    @app.job(retry=AT_ONCE)
    async def parent(ctx: Context) -> list[int]:
        got.append(await ctx.gather([audit.call(1), audit.call(2)], failures="collect"))
        if len(got) == 1:
            raise ValueError("once more")
        return await ctx.gather([audit.call(2)])

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        assert (await seen(store, job_id)).result == "[2]"

    warned = ("step screenshots gave up: OSError: the browser is gone",)
    told = [(result.ok, result.value, result.warnings) for result in got[0]]
    assert told == [(True, 1, ()), (True, 2, warned)]
    assert got[1] == got[0]


async def test_a_quorum_out_of_reach_wakes_the_parent_at_once(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(n) for n in (1, 2, 3)], quorum=2)

    job_id = await put(store, parent.call())
    gate.tell(1, 2, order="die")
    async with at_work(store, app) as shift:
        view = await seen(store, job_id)
        assert (await seen(store, (await child_of(store, job_id, 2)).id)).state is JobState.CANCELLED

    assert view.state is JobState.DEAD
    assert "perdure.ChildrenFailed: 2 of 3 children" in (view.last_error or "")
    assert [event.because for event in shift.told(FamilySettled)] == ["quorum out of reach"]


async def test_children_that_are_not_there_in_time(store: Store, app: App, gate: Gate, clock: ManualClock) -> None:
    child = gated(app, gate)
    got: list[ChildResult[int]] = []
    raised: list[ChildrenTimeout] = []

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> None:
        got[:] = await ctx.gather([child.call(1), child.call(2)], failures="collect", within="1h")
        try:
            await ctx.gather([child.call(3)], within="1h", name="again")
        except ChildrenTimeout as error:
            raised.append(error)
            raise

    job_id = await put(store, parent.call())
    gate.tell(1)
    async with at_work(store, app) as shift:
        view = await seen(store, job_id, JobState.WAITING)
        assert view.due_at is not None
        await seen(store, (await child_of(store, job_id, 0)).id)
        clock.move(HOUR + MINUTE)
        await until(lambda: 3 in gate.runs)
        await seen(store, job_id, JobState.WAITING)
        clock.move(HOUR + MINUTE)
        view = await seen(store, job_id)

    assert [(result.ok, result.value, result.state) for result in got] == [
        (True, 10, JobState.SUCCEEDED),
        (False, None, None),
    ]
    assert "perdure.ChildrenTimeout: 1 of 1 children of again are not finished after 3600 s" in (view.last_error or "")
    assert (raised[0].unfinished, raised[0].results) == ((0,), (None,))
    assert [event.because for event in shift.told(FamilySettled)] == ["the time is up"] * 2


async def test_what_was_seen_of_children_stays_what_later_attempts_see(store: Store, app: App, gate: Gate) -> None:
    """The third child ends between two attempts of its parent, which had gone on without it."""
    child = gated(app, gate)
    got: list[list[int]] = []
    on = asyncio.Event()

    @app.job(retry=AT_ONCE)
    async def parent(ctx: Context) -> list[int]:
        got.append(await ctx.gather([child.call(n) for n in (1, 2, 3)], quorum=2))
        if ctx.attempt == 1:
            await on.wait()
            raise ValueError("once more")
        return got[-1]

    job_id = await put(store, parent.call())
    gate.tell(1, 2)
    async with at_work(store, app):
        await until(lambda: got)
        gate.tell(3)
        assert (await seen(store, (await child_of(store, job_id, 2)).id)).state is JobState.SUCCEEDED
        on.set()
        view = await seen(store, job_id)

    assert view.result == "[10,20]"
    assert got == [[10, 20], [10, 20]]


async def test_spawned_children_are_made_once_and_can_be_gathered_later(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    families: list[Any] = []

    @app.job(retry=AT_ONCE)
    async def parent(ctx: Context) -> list[int]:
        family = await ctx.spawn([child.call(1), child.call(2)], name="loads")
        families.append(family)
        if ctx.attempt == 1:
            raise ValueError("after the spawn")
        return await ctx.gather(family)

    job_id = await put(store, parent.call())
    gate.tell(1, 2)
    async with at_work(store, app) as shift:
        view = await seen(store, job_id)

    assert view.result == "[10,20]"
    assert len(shift.told(FamilySpawned)) == 1
    assert sorted(gate.runs) == [1, 2]
    ids = tuple(found.job_id for found in await store.children(job_id, "loads"))
    assert {family.ids for family in families} == {ids}


class Doubtful:
    """A store that commits the first spawn and then loses the answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.spawns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        held = await self._store.spawn(claim, family)
        self.spawns += 1
        if self.spawns == 1:
            raise StoreUnavailable("the connection was lost during the commit")
        return held


async def test_a_spawn_in_doubt_is_repeated_and_spawns_nothing_twice(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)
    doubtful = Doubtful(store)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1), child.call(2)])

    job_id = await put(store, parent.call())
    gate.tell(1, 2)
    async with at_work(cast("Store", doubtful), app) as shift:
        view = await seen(store, job_id)

    assert (view.result, view.failures) == ("[10,20]", 0)
    assert (doubtful.spawns, sorted(gate.runs)) == (2, [1, 2])
    assert [event.what for event in shift.told(StoreTrouble)] == ["spawn"]


async def test_two_families_can_be_waited_for_at_once(store: Store, app: App, gate: Gate) -> None:
    child = gated(app, gate)

    @app.job
    async def parent(ctx: Context) -> list[int]:
        first = ctx.gather([child.call(1)], name="first")
        second = ctx.gather([child.call(2), child.call(3)], name="second")
        (one,), (two, three) = await asyncio.gather(first, second)
        return [one, two, three]

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        await seen(store, job_id, JobState.WAITING)
        await until(lambda: len(gate.runs) == 3)
        gate.tell(2, 3)
        await seen(store, (await child_of(store, job_id, 0, "second")).id)
        await seen(store, (await child_of(store, job_id, 1, "second")).id)
        gate.tell(1)
        view = await seen(store, job_id)

    assert view.result == "[10,20,30]"
    assert sorted(gate.runs) == [1, 2, 3]


async def test_many_children_are_read_page_by_page(store: Store, app: App) -> None:
    @app.job
    async def load(number: int) -> int:
        return number

    @app.job
    async def parent(ctx: Context) -> bool:
        return await ctx.gather(load.call(n) for n in range(2_345)) == list(range(2_345))

    job_id = await put(store, parent.call())
    async with at_work(store, app, concurrency=100):
        assert (await seen(store, job_id)).result == "true"


async def test_a_handler_that_asks_for_other_children_than_it_had_is_reported_so(
    store: Store, app: App, gate: Gate
) -> None:
    child = gated(app, gate)
    wanted = [1, 2]

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(n) for n in wanted])

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        await until(lambda: len(gate.runs) == 2)
        wanted.append(3)
        gate.tell(1, 2)
        view = await seen(store, job_id)

    assert view.state is JobState.DEAD
    assert "step gather had 2 children and is now asked for 3" in (view.last_error or "")


async def test_a_cycle_of_parents_ends(store: Store, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.flows.families.spawning.GENERATIONS_LIMIT", 5)

    @app.job(retry=ONCE)
    async def turtle(ctx: Context, depth: int) -> int:
        return 1 + (await ctx.gather([turtle.call(depth + 1)], failures="collect"))[0].ok

    job_id = await put(store, turtle.call(1))
    async with at_work(store, app):
        assert (await seen(store, job_id)).state is JobState.SUCCEEDED
        dead = await store.jobs(JobFilter(states=frozenset({JobState.DEAD})), Page())
    assert [view.args for view in dead] == ['{"depth":5}']
    assert "children of generation 6, 5 are allowed: a cycle of parents?" in (dead[0].last_error or "")
    assert dead[0].reason == "permanent failure"


async def test_the_error_at_the_end_of_a_line_of_parents_is_reported_by_the_first(store: Store, app: App) -> None:
    @app.job(retry=ONCE)
    async def line(ctx: Context, left: int) -> None:
        if not left:
            raise ValueError("the root of it")
        await ctx.gather([line.call(left - 1)])

    job_id = await put(store, line.call(4))
    async with at_work(store, app):
        error = (await seen(store, job_id)).last_error or ""
    assert error.count("ChildrenFailed") == 1
    assert error.count("its own children failed") == 1
    assert error.endswith("is dead: ValueError: the root of it")


async def test_other_kinds_than_before_are_refused_while_the_children_still_run(
    store: Store, app: App, gate: Gate
) -> None:
    child, is_changed = gated(app, gate), list[bool]()

    @app.job
    async def other(number: int) -> int:
        return number

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather([child.call(1), other.call(2) if is_changed else child.call(2)])

    job_id = await put(store, parent.call())
    async with at_work(store, app):
        await seen(store, job_id, JobState.WAITING)
        is_changed.append(True)
        await store.run_now(only(job_id), By("test"), 1)
        view = await seen(store, job_id)
    assert view.state is JobState.DEAD
    assert "spawned child as number 1 and is now asked for other" in (view.last_error or "")
