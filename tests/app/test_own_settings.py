"""Settings of one job alone: whatever way it comes in, its attempts go by them, and all that is told of it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.builders.jobs import claim_some, employ
from tests.support.databases.behind import query
from tests.support.working import at_work, found, seen

from perdure import App, Backoff, Context, Jitter, JobFilter, JobState, Page, Retry, Unique
from perdure.policy.own_settings import read_settings

TWICE = Retry(attempts=2, backoff=Backoff.none(), jitter=Jitter.none())


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url, retry=Retry.none()) as app:
        yield app


async def test_b8_a_job_fails_by_its_own_policy(app: App) -> None:
    """`max_attempts` of its own, and not that of its kind, in the view and in what happens."""

    @app.job
    async def fails() -> None:
        raise ValueError("broken")

    own = await fails.using(retry=TWICE).enqueue()
    usual = await fails.enqueue()
    assert [(await handle.view()).max_attempts for handle in (own, usual)] == [2, 1]
    store = await app.store()
    async with at_work(store, app):
        views = [await seen(store, handle.id) for handle in (own, usual)]
    assert [(view.state, view.failures) for view in views] == [(JobState.DEAD, 2), (JobState.DEAD, 1)]


async def test_b8_a_job_has_a_time_limit_of_its_own(app: App) -> None:
    @app.job(timeout="1h")
    async def sleeps() -> None:
        await asyncio.sleep(3600)

    handle = await sleeps.using(timeout="50ms").enqueue()
    store = await app.store()
    async with at_work(store, app):
        view = await seen(store, handle.id)
    assert "time limit of 50ms" in (view.last_error or "")


async def test_b8_a_job_has_a_crash_limit_of_its_own(app: App) -> None:
    @app.job(crashes=5)
    async def send(number: int) -> None: ...

    await send.using(crash_limit=1).enqueue(1)
    await send.enqueue(2)
    store = await app.store()
    claims = await claim_some(store, await employ(store))
    assert [claim.crash_limit for claim in claims] == [1, 5]


async def test_b8_settings_go_with_calls_of_every_sort(app: App) -> None:
    """Alike and mixed batches, fair and unique ones, for later and for now."""

    @app.job
    async def send(number: int) -> None: ...

    own = send.using(retry=TWICE, timeout="7s")
    later = send.using(retry=TWICE, timeout="7s", delay="1h")
    unique = send.using(retry=TWICE, timeout="7s", unique=Unique())
    alike = await app.enqueue_many([own.call(1), own.call(2)])
    mixed = await app.enqueue_many([own.call(3), send.call(4), later.call(5), unique.call(6)])
    views = [await handle.view() for handle in (*alike, *mixed)]
    assert [view.max_attempts for view in views] == [2, 2, 2, 1, 2, 2]
    assert [view.settings is None for view in views] == [False, False, False, True, False, False]
    for view in views:
        if view.settings is not None:
            assert (read_settings(view.settings).retry, str(read_settings(view.settings).timeout)) == (TWICE, "0:00:07")


async def test_b8_a_newcomer_that_replaces_brings_its_settings(app: App) -> None:
    @app.job
    async def send(number: int) -> None: ...

    one_at_a_time = Unique(by="number", on_conflict="replace")
    first = await send.using(unique=one_at_a_time, delay="1h").enqueue(1)
    await send.using(unique=one_at_a_time, delay="1h", retry=TWICE, crash_limit=7).enqueue(1)
    view = await first.view()
    assert (view.max_attempts, read_settings(view.settings).retry) == (2, TWICE)


async def test_b8_children_chains_and_schedules_carry_settings(app: App) -> None:
    @app.job
    async def fails(name: str) -> None:
        raise ValueError(name)

    @app.job
    async def parent(ctx: Context) -> None:
        await ctx.gather([fails.using(retry=TWICE).call("child")], failures="collect")

    await app.schedule("often", fails.using(retry=TWICE).call("fired"), every="1h")
    desk = await app.desk("ada")
    await desk.calendar.trigger("often")
    await parent.enqueue()
    await (fails.using(retry=TWICE).call("link") | fails.call("never")).enqueue()
    store = await app.store()

    async def all_dead() -> bool:
        views = await store.jobs(JobFilter(kind="fails"), Page())
        return len(views) == 3 and all(view.state is JobState.DEAD for view in views)

    async with at_work(store, app):
        await found(all_dead)
    views = await store.jobs(JobFilter(kind="fails"), Page())
    assert [(view.failures, view.max_attempts) for view in views] == [(2, 2)] * 3


async def test_tags_and_metadata_of_a_call_reach_the_jobs_of_its_schedule(app: App) -> None:
    @app.job
    async def report(ctx: Context) -> dict[str, Any]:
        return {"tags": ctx.tags, "meta": ctx.meta, "is_told": ctx.nominal_at is not None}

    call = report.using(tags=["monthly", "eu"], meta={"tenant": "acme", "schedule": "mine"}).call()
    await app.schedule("often", call, every="1h")
    desk = await app.desk("ada")
    await desk.calendar.trigger("often")
    store = await app.store()
    [view] = await store.jobs(JobFilter(tag="monthly"), Page())
    assert view.tags == ("schedule:often", "monthly", "eu")
    async with at_work(store, app):
        told = await report.handle(view.id).result("30s")
    assert (told["meta"]["tenant"], told["meta"]["schedule"], told["is_told"]) == ("acme", "often", True)


async def test_the_fair_share_of_a_kind_goes_with_calls_of_every_sort(app: App, engine_url: str) -> None:
    @app.job(fair="tenant")
    async def send(tenant: str) -> None: ...

    await app.schedule("often", send.call("fired"), every="1h")
    await (await app.desk("ada")).calendar.trigger("often")
    await app.batch([send.call("batched")], then=send.call("after a batch"))
    await (send.call("link 1") | send.call("link 2")).enqueue()
    store = await app.store()

    async def all_done() -> bool:
        views = await store.jobs(JobFilter(kind="send"), Page())
        return len(views) == 5 and all(view.state is JobState.SUCCEEDED for view in views)

    async with at_work(store, app):
        await found(all_done)
    keys = query(engine_url, "SELECT fair_key FROM {job} WHERE kind = 'send'")
    assert sorted(keys) == [("after a batch",), ("batched",), ("fired",), ("link 1",), ("link 2",)]


async def test_b8_a_retry_function_that_refuses_its_setting_is_heard_at_enqueue(app: App) -> None:
    def from_environment() -> Retry:
        raise ValueError("FLAG_SCHEDULE_MAX_RETRIES must be from 0 to 10, got 15")

    @app.job(retry=from_environment)
    async def flag(key: str) -> None: ...

    with pytest.raises(ValueError, match="FLAG_SCHEDULE_MAX_RETRIES must be from 0 to 10, got 15") as refused:
        await flag.enqueue("dark-mode")
    assert refused.value.__notes__ == ["while reading the retry policy of job flag"]
    with pytest.raises(ValueError, match="FLAG_SCHEDULE_MAX_RETRIES"):
        await app.enqueue_many([flag.call("dark-mode")])
    assert await (await app.store()).jobs(JobFilter(), Page()) == []
    assert (await flag.using(retry=TWICE).enqueue("dark-mode")).is_new, "its own policy needs no other"
