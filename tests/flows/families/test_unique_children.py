"""Unique children of gathers, batches and chains: joined to the job that holds the key, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.programs import isolated_flows
from tests.support.working import at_work, seen

from perdure import App, Context, DuplicateChildError, JobState, Retry, SyncContext, Unique
from perdure.clock import ManualClock
from perdure.testing import Sandbox

BY_SITE = Unique(by="site")
REJECT = Unique(by="site", on_conflict="reject")


class Audits:
    """An app whose audits of one site are one job."""

    def __init__(self, app: App) -> None:
        self.runs: list[str] = []
        self.refused: list[DuplicateChildError] = []

        @app.job(unique=BY_SITE, queue="audits", retry=Retry(attempts=1))
        async def audit(site: str) -> int:
            self.runs.append(site)
            if site == "broken":
                raise ValueError("no such site")
            return len(site)

        @app.job
        async def report(ctx: Context, sites: list[str]) -> list[int]:
            return await ctx.gather(audit.call(site) for site in sites)

        @app.job
        def report_in_a_thread(ctx: SyncContext, site: str) -> tuple[str, list[int]]:
            family = ctx.spawn([audit.call(site)])
            return family.ids[0], ctx.gather(family)

        @app.job(retry=Retry(attempts=1))
        async def strict(ctx: Context, site: str) -> list[int]:
            try:
                return await ctx.gather([audit.call("free"), audit.using(unique=REJECT).call(site)])
            except DuplicateChildError as error:
                self.refused.append(error)
                raise

        @app.job
        async def double(result: int) -> int:
            return 2 * result

        self.audit, self.report, self.strict, self.double = audit, report, strict, double
        self.report_in_a_thread = report_in_a_thread


@pytest.fixture
async def app(engine_url: str, clock: ManualClock) -> Any:
    async with App(engine_url, clock=clock) as app:
        yield app


@pytest.fixture
def audits(app: App) -> Audits:
    return Audits(app)


async def test_a_gather_joins_the_job_that_holds_the_key_and_gets_its_result(app: App, audits: Audits) -> None:
    held = await audits.audit.enqueue("example")
    several = [await audits.report.enqueue(["example", "other", "example"]) for _ in range(2)]
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        for handle in several:
            await seen(store, handle.id, JobState.WAITING)
        assert (await store.children(several[0].id, "gather"))[0].job_id == held.id
    async with at_work(store, app, queues=("default", "audits")):
        for handle in several:
            assert await handle.result("30s") == [7, 5, 7]
    assert sorted(audits.runs) == ["example", "other"]


async def test_a_sync_handler_is_reported_which_job_it_waits_for(app: App, audits: Audits) -> None:
    held = await audits.audit.enqueue("example")
    handle = await audits.report_in_a_thread.enqueue("example")
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        await seen(store, handle.id, JobState.WAITING)
        async with at_work(store, app, queues=("audits",)):
            assert await handle.result("30s") == (held.id, [7])


async def test_a_failure_of_the_joined_job_is_one_of_the_family(app: App, audits: Audits) -> None:
    held = await audits.audit.enqueue("broken")
    handle = await audits.report.enqueue(["broken"])
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        await seen(store, handle.id, JobState.WAITING)
        async with at_work(store, app, queues=("audits",)):
            assert (await seen(store, held.id)).state is JobState.DEAD
            view = await seen(store, handle.id, JobState.RETRYING, JobState.DEAD)
    assert "1 of 1 children of gather failed" in (view.last_error or "")
    assert held.id in (view.last_error or "")


async def test_a_child_that_is_to_be_refused_raises_an_error_that_names_it_and_the_holder(
    app: App, audits: Audits
) -> None:
    held = await audits.audit.enqueue("example")
    handle = await audits.strict.enqueue("example")
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        view = await seen(store, handle.id)
    [error] = audits.refused
    assert (error.family, error.number, error.kind, error.job_id) == ("gather", 1, audits.audit.kind.name, held.id)
    assert f"child 1 of gather ({error.kind}) cannot be made: job {held.id} already holds" in (view.last_error or "")
    assert await store.families(handle.id) == []


async def test_batches_and_chains_join_in_the_same_way(app: App, audits: Audits) -> None:
    """The first link of a chain, one in the middle, the calls of a batch, and what comes after it."""
    held = await audits.audit.enqueue("example")
    call = audits.audit.call("example")
    first = await (call | audits.double.after()).enqueue()
    middle = await (audits.audit.call("other") | call | audits.double.after()).enqueue()
    batch = await app.batch([call, audits.audit.call("third")], then=call)
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        for handle in (first, middle, batch):
            await seen(store, handle.id, JobState.WAITING)
        async with at_work(store, app, queues=("audits",), concurrency=1):
            assert await first.result("30s") == 14
            assert await middle.result("30s") == 14
            outcome = await batch.result("30s")
    assert (outcome.succeeded, outcome.failed) == (2, 0)
    assert (await store.children(batch.id, "calls"))[0].job_id == held.id
    assert outcome.then is not None


async def test_a_job_that_gathers_its_own_key_is_dead_with_the_reason_and_does_not_wait_for_itself() -> None:
    app = App("sqlite:///never-opened.db")

    @app.job(unique=Unique(by=()))
    async def rebuild(ctx: Context, depth: int) -> None:
        if depth:
            await ctx.gather([rebuild.call(depth - 1)])

    async with Sandbox(app) as box:
        handle = await rebuild.enqueue(1)
        await box.drain()
        view = await box.job(handle)
    assert (view.state, view.failures) == (JobState.DEAD, 1)
    assert f"step gather would wait for itself: the unique key of child 0 (rebuild) is held by job {view.id}" in (
        view.last_error or ""
    )


async def test_a_sandbox_wakes_parents_of_joined_jobs() -> None:
    app = App("sqlite:///never-opened.db")
    audits = Audits(app)
    async with Sandbox(app) as box:
        handle = await audits.report.enqueue(["example", "example"])
        await box.drain()
        assert await handle.result() == [7, 7]
    assert audits.runs == ["example"]


async def test_a_handler_in_a_process_of_its_own_is_reported_by_the_same_error(engine_url: str) -> None:
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        held = await isolated_flows.only_one.using(delay="1h").enqueue()
        handle = await isolated_flows.asks_for_only_one.enqueue()
        await box.drain()
        view = await box.job(handle)
    assert view.result == f'["spawn",0,"{held.id}"]'
