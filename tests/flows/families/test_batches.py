"""Batches and chains, made outside any handler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.builders.jobs import only
from tests.support.working import at_work, seen

from perdure import (
    App,
    ArgumentError,
    Chain,
    ChildResult,
    Context,
    Handle,
    JobState,
    JobView,
    NotFoundError,
    PayloadError,
    Permanent,
    Retry,
    SettingsError,
)
from perdure.clock import ManualClock
from perdure.domain.flows.flow import OnEnd
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.operate.audit import By
from perdure.testing import Sandbox

ONCE = Retry(attempts=1)


class Jobs:
    """Some jobs of an app, and what they were called with."""

    def __init__(self, app: App) -> None:
        self.calls: list[Any] = []
        self.reported: list[Any] = []
        self.broken = {"broken"}

        @app.job(retry=ONCE)
        async def measure(text: str) -> int:
            self.calls.append(text)
            if text in self.broken:
                raise Permanent(f"{text} cannot be measured")
            return len(text)

        @app.job
        async def guess(ctx: Context) -> None:
            await ctx.step("look", self.look, optional=True)

        @app.job
        async def add(result: int, more: int) -> int:
            self.calls.append((result, more))
            return result + more

        @app.job
        async def tell(title: str, result: int | None = None) -> str:
            return f"{title}: {result}"

        @app.job
        async def report(ctx: Context, results: list[ChildResult[int]], title: str) -> str:
            self.reported.append((title, ctx.meta["batch"], results))
            return title

        @app.job
        async def note(ctx: Context) -> dict[str, Any]:
            return ctx.meta

        self.measure, self.add, self.tell, self.report, self.note = measure, add, tell, report, note
        self.guess = guess

    def look(self) -> None:
        raise OSError("too dark")


@pytest.fixture
async def app(engine_url: str, clock: ManualClock) -> Any:
    app = App(engine_url, clock=clock)
    async with app:
        yield app


@pytest.fixture
def jobs(app: App) -> Jobs:
    return Jobs(app)


async def ended(app: App, handle: Handle[Any]) -> JobView:
    return await seen(await app.store(), handle.id)


async def test_what_comes_after_a_batch_gets_the_results_and_how_it_went(app: App, jobs: Jobs) -> None:
    calls = [jobs.measure.call("one"), jobs.measure.call("broken"), jobs.measure.call("three")]
    handle = await app.batch(calls, then=jobs.report.after("sizes"), name="night")
    store = await app.store()
    async with at_work(store, app):
        outcome = await handle.result("30s")
        assert outcome.then is not None
        after = await seen(store, outcome.then)

    assert (outcome.total, outcome.succeeded, outcome.failed) == (3, 2, 1)
    assert (after.state, after.parent) == (JobState.SUCCEEDED, handle.id)
    [(title, batch, results)] = jobs.reported
    assert title == "sizes"
    assert batch == {"id": handle.id, "name": "night", "total": 3, "succeeded": 2, "failed": 1, "with_warnings": 0}
    assert [(result.ok, result.value, result.state) for result in results] == [
        (True, 3, JobState.SUCCEEDED),
        (False, None, JobState.DEAD),
        (True, 5, JobState.SUCCEEDED),
    ]
    assert "broken cannot be measured" in results[1].error
    families = {family.key: family.on_end for family in await store.families(handle.id)}
    assert families == {"calls": OnEnd.CANCEL, "then": OnEnd.KEEP}


async def test_e4_a_batch_counts_those_that_are_done_with_warnings(app: App, jobs: Jobs) -> None:
    handle = await app.batch([jobs.measure.call("one"), jobs.guess.call(), jobs.measure.call("broken")])
    async with at_work(await app.store(), app):
        outcome = await handle.result("30s")
    assert (outcome.total, outcome.succeeded, outcome.failed, outcome.with_warnings) == (3, 2, 1, 1)


async def test_a_batch_keeps_what_was_said_about_its_calls(app: App, jobs: Jobs) -> None:
    call = jobs.measure.using(tags=["big"], priority=2, meta={"who": "Ada"}).call("one")
    then = jobs.note.using(meta={"kept": True}).call()
    handle = await app.batch([call], then=then)
    store = await app.store()
    async with at_work(store, app):
        outcome = await handle.result("30s")
        assert outcome.then is not None
        after = await seen(store, outcome.then)

    [child] = await store.children(handle.id, "calls")
    view = await seen(store, child.job_id)
    assert (view.tags, view.priority, view.meta) == (("big",), 2, '{"who":"Ada"}')
    assert view.max_attempts == 1
    assert '"kept":true' in (after.result or "")


async def test_a_chain_hands_each_result_to_the_next(app: App, jobs: Jobs) -> None:
    chain: Chain[str] = jobs.measure.call("four") | jobs.add.after(10) | jobs.add.after(more=1) | jobs.tell.call("size")
    handle: Handle[str] = await chain.enqueue()
    async with at_work(await app.store(), app):
        assert await handle.result("30s") == "size: 15"
    assert jobs.calls == ["four", (4, 10), (14, 1)]


async def test_a_failure_ends_a_chain_and_the_rest_is_never_made(app: App, jobs: Jobs) -> None:
    handle = await (jobs.measure.call("four") | jobs.measure.call("broken") | jobs.add.after(1)).enqueue()
    store = await app.store()
    async with at_work(store, app):
        view = await ended(app, handle)

    assert (view.state, view.failures) == (JobState.DEAD, 1)
    assert "perdure.ChildrenFailed: 1 of 1 children of stage#2 failed" in (view.last_error or "")
    assert jobs.calls == ["four", "broken"]
    assert [family.key for family in await store.families(handle.id)] == ["stage", "stage#2"]


async def test_a_dead_chain_goes_on_once_its_dead_job_and_then_itself_are_requeued(app: App, jobs: Jobs) -> None:
    handle = await (jobs.measure.call("four") | jobs.measure.call("broken") | jobs.add.after(1)).enqueue()
    store = await app.store()
    async with at_work(store, app):
        await ended(app, handle)
        jobs.broken.clear()
        [dead] = await store.children(handle.id, "stage#2")
        await store.requeue(only(dead.job_id), By("test"), 1)
        assert (await seen(store, dead.job_id)).state is JobState.SUCCEEDED
        await store.requeue(only(handle.id), By("test"), 1)
        assert await handle.result("30s") == 7
    assert jobs.calls == ["four", "broken", "broken", (6, 1)]


def test_callers_without_a_loop_have_batches_and_chains_too(engine_url: str) -> None:
    app = App(engine_url)
    jobs = Jobs(app)
    try:
        batch = app.batch_sync([jobs.measure.call("one")])
        chain = (jobs.measure.call("four") | jobs.add.after(1)).enqueue_sync(queue="slow")
        assert (batch.view_sync().kind, chain.view_sync().queue) == ("perdure.batch", "slow")
    finally:
        app.close_sync()


async def test_batches_and_chains_run_in_a_sandbox() -> None:
    app = App("sqlite:///never-opened.db")
    jobs = Jobs(app)
    async with Sandbox(app) as box:
        batch = await app.batch([jobs.measure.call("one"), jobs.measure.call("two")], then=jobs.report.after("both"))
        chain = await (jobs.measure.call("one") | jobs.add.after(1)).enqueue()
        drained = await box.drain()
        assert (drained.left, drained.dead) == (0, 0)
        assert await chain.result() == 4
        assert (await batch.result()).succeeded == 2
    assert [title for title, *_ in jobs.reported] == ["both"]


async def test_what_cannot_be_meant_is_refused_by_name(app: App, jobs: Jobs) -> None:
    other = Jobs(App("sqlite:///never-opened.db"))
    with pytest.raises(ArgumentError, match="calls of a batch are empty"):
        await app.batch([])
    with pytest.raises(ArgumentError, match="argument result of add is missing"):
        await app.batch([jobs.add.after(1)])
    with pytest.raises(ArgumentError, match="argument result of add is missing"):
        await (jobs.add.after(1) | jobs.add.after(1)).enqueue()
    with pytest.raises(ArgumentError, match="argument result of add is missing"):
        await app.enqueue_many([jobs.add.after(1)])
    with pytest.raises(ArgumentError, match="argument results of report is missing: here only 'result' is given"):
        await (jobs.measure.call("one") | jobs.report.after("x")).enqueue()
    with pytest.raises(ArgumentError, match=r"first parameter is called 'result' .* and it is 'text': use call"):
        jobs.measure.after()
    with pytest.raises(PayloadError, match="argument more"):
        jobs.add.after("much")  # type: ignore[arg-type] # that is the point
    with pytest.raises(PayloadError, match=r"argument more of .*add is missing"):
        jobs.add.after()  # type: ignore[call-arg] # that is the point
    with pytest.raises(ArgumentError, match="id of measure cannot be set"):
        await app.batch([jobs.measure.using(id=new_job_id()).call("one")])
    stranger = App("sqlite:///never-opened.db")
    with pytest.raises(ArgumentError, match="calls must not contain measure, which another app"):
        await stranger.batch([other.measure.call("one")])

    @stranger.job
    async def strange() -> None: ...

    with pytest.raises(ArgumentError, match="then must not contain strange, which another app"):
        await app.batch([jobs.measure.call("one")], then=strange.call())
    with pytest.raises(ArgumentError, match="chain must not contain strange, which another app"):
        await (jobs.measure.call("one") | strange.call()).enqueue()
    nonsense: Any
    for nonsense in (jobs.measure.call("one"), 5, None):
        with pytest.raises(ArgumentError, match="calls must be a list of calls"):
            await app.batch(nonsense)
    nonsense = "report"
    with pytest.raises(ArgumentError, match=r"then must be calls such as job.call\(1\), got 'report'"):
        await app.batch([jobs.measure.call("one")], then=nonsense)
    with pytest.raises(ArgumentError, match="queue must be 1 to"):
        await app.batch([jobs.measure.call("one")], queue="")
    with pytest.raises(ArgumentError, match="chain must continue with a call"):
        jobs.measure.call("one") | "two"  # type: ignore[operator] # that is the point


async def test_chains_are_joined_to_chains(app: App, jobs: Jobs) -> None:
    tail = jobs.add.after(1) | jobs.add.after(2)
    assert [call.kind.name for call in (jobs.measure.call("a") | tail).calls] == ["measure", "add", "add"]
    assert (jobs.measure.call("a") | jobs.add.after(0) | tail).calls[-2:] == tail.calls


async def test_the_queue_of_a_chain_is_one_of_the_apps() -> None:
    app = App("sqlite:///never-opened.db", queues=["slow"])

    @app.job(queue="slow")
    async def step() -> None: ...

    with pytest.raises(ArgumentError, match="queue 'default' is not one of this app's queues: slow"):
        await (step.call() | step.call()).enqueue()


def test_our_own_kinds_are_not_among_those_of_the_user() -> None:
    app = App("sqlite:///never-opened.db")
    assert app.kinds == {}
    with pytest.raises(NotFoundError, match="declared are: none"):
        app.job_named("perdure.batch")

    async def mine() -> None: ...

    with pytest.raises(SettingsError, match=r"name of job perdure.mine begins with 'perdure.', which perdure reserves"):
        app.job(name="perdure.mine")(mine)


async def test_a_batch_is_part_of_the_callers_transaction(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    async with App(f"sqlite:///{file}") as app:
        connection = apsw.Connection(str(file))
        connection.execute("BEGIN IMMEDIATE")
        handle = await app.batch([Jobs(app).measure.call("one")], connection=connection)
        connection.execute("ROLLBACK")
        connection.close()
        assert await app.view(handle.id) is None
