"""Gates before a step (E8): over the quota the job waits at no cost, and comes back by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.conftest import OpenStore
from tests.support.builders.gates import PATIENT, costs, paused, some, standing
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND, enqueue, show
from tests.support.programs.gated_steps import app as isolated
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import (
    App,
    Backoff,
    Breaker,
    Budget,
    BudgetExceeded,
    Concurrency,
    Context,
    JobState,
    Rate,
    Retry,
    SettingsError,
    SyncContext,
)
from perdure.clock import ManualClock
from perdure.events import BreakerClosed, BreakerOpened, GateNearlyFull
from perdure.operate.why.why import why
from perdure.storage.port import Store
from perdure.testing import Sandbox

UNUSED = "sqlite:///unused.db"
ONCE = Retry(attempts=1)


class Site:
    """Counts who has called it."""

    def __init__(self) -> None:
        self.calls = list[str]()

    async def fetch(self, url: str) -> str:
        self.calls.append(url)
        return f"read {url}"

    def fetch_plainly(self, url: str) -> str:
        self.calls.append(url)
        return f"read {url}"


async def test_e8_over_the_quota_the_job_waits_at_no_cost_and_comes_back_by_itself(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    """Six a minute over two workers; what was done before is not done again, and a finished step asks no gate."""
    app, site, before, after = App(UNUSED), Site(), Counter[str](), Counter[str]()

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        await ctx.step("before", before.update, [ctx.job_id])
        text = await ctx.step(
            "psi", site.fetch, name, gates=[Rate(6, "1m", name="psi"), Rate(25_000, "1d", name="psi")]
        )
        await ctx.sleep("10s")
        after[ctx.job_id] += 1
        return text

    await some(store, 10)
    async with at_work(store, app, **PATIENT), at_work(await other_store(), app, **PATIENT):
        held = paused(await standing(store, waiting=6, paused=4))
        assert len(site.calls) == 6
        for view in held:
            assert view.reason.startswith("rate limited: psi: 6 of 6 starts in 1m, 6 of 25000 starts in 1d")
            assert view.reason.endswith("before step psi")
            assert view.due_at == clock.now() + MINUTE
        clock.move(MINUTE / 2)
        await standing(store, succeeded=6, paused=4)
        clock.move(MINUTE / 2)
        await standing(store, succeeded=6, waiting=4)
        assert len(site.calls) == 10
        clock.move(MINUTE)
        done = await standing(store, succeeded=10)
    assert costs(done) == {(0, 0)}
    assert len(site.calls) == 10
    assert set(before.values()) == set(after.values()) == {1}


async def test_g8_two_workers_never_exceed_the_rate_of_a_step(real_time_store: Store) -> None:
    app, site = App(UNUSED), Site()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("psi", site.fetch, name, gates=[Rate(20, "1d", name="psi")])

    other = real_time_store.sibling()
    await other.open()
    try:
        await some(real_time_store, 60)
        async with at_work(real_time_store, app, concurrency=30), at_work(other, app, concurrency=30):
            await standing(real_time_store, succeeded=20, paused=40)
    finally:
        await other.close()
    assert len(site.calls) == 20


async def test_e8_it_is_reported_when_four_fifths_are_used(store: Store) -> None:
    app, site = App(UNUSED), Site()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("psi", site.fetch, name, gates=[Rate(5, "1h", name="psi"), Budget("ai", daily=10, estimate=1)])
        await ctx.spend(2)

    await some(store, 4)
    async with at_work(store, app, **PATIENT | {"concurrency": 1}) as shift:
        await standing(store, succeeded=4)
        told = {(event.gate, event.used, event.limit) for event in shift.told(GateNearlyFull)}
    assert told == {("psi", 4, 5), ("ai", 8, 10)}
    assert await store.spent("ai", await store.now() - DAY) == 8


async def test_e8_why_says_which_gate_holds_which_step(store: Store) -> None:
    app, site = App(UNUSED), Site()

    @app.job
    def greet(ctx: SyncContext, name: str) -> str:
        return ctx.step("fetch", site.fetch_plainly, name, gates=[Rate(1, "1h")])

    await some(store, 2)
    async with at_work(store, app, **PATIENT):
        [held] = paused(await standing(store, succeeded=1, paused=1))
    assert held.reason.startswith("rate limited: greet/fetch: 1 of 1 starts in 1h")
    told = await why(store, held)
    assert "before step fetch" in str(told)


async def test_a_key_of_a_gate_before_a_step_is_of_the_arguments_of_the_job(store: Store) -> None:
    app, site = App(UNUSED), Site()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("fetch", site.fetch, "x", gates=[Rate(1, "1h", key="name")])

    for name in ("Ada", "Ada", "Eve"):
        await enqueue(store, args=f'{{"name":"{name}"}}')
    async with at_work(store, app, **PATIENT):
        [held] = paused(await standing(store, succeeded=2, paused=1))
    assert 'greet/fetch:"Ada"' in held.reason


async def test_each_try_of_a_step_passes_the_gate(store: Store, clock: ManualClock) -> None:
    app, tries = App(UNUSED), list[int]()

    async def fail() -> None:
        tries.append(1)
        raise OSError

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        again = Retry(attempts=5, backoff=Backoff.fixed("0s"))
        await ctx.step("fetch", fail, retry=again, gates=[Rate(2, "1h")])

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        held = await seen(store, job, JobState.PAUSED)
        assert len(tries) == 2
        clock.move(HOUR)
        await until(lambda: len(tries) == 4)
    assert held.failures == 0


async def test_a_budget_before_a_step_holds_and_is_spent_from(store: Store, clock: ManualClock) -> None:
    app, site = App(UNUSED), Site()
    money = Budget("ai", daily=10, estimate=lambda arguments: len(arguments["name"]))

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("ask", site.fetch, name, gates=[money])
        await ctx.spend(8, "ai")

    first = await enqueue(store, args='{"name":"Ada"}')
    async with at_work(store, app, **PATIENT):
        await seen(store, first, JobState.SUCCEEDED)
        held = await seen(store, await enqueue(store, args='{"name":"Ada"}'), JobState.PAUSED)
        assert held.reason.startswith("budget exceeded: ai: 8 of 10 spent in 1d, estimate 3")
        clock.move(DAY)
        await seen(store, held.id, JobState.SUCCEEDED)


async def test_c10_a_budget_that_fails_when_spent_raises_in_the_handler(store: Store) -> None:
    app, site = App(UNUSED), Site()
    money = Budget("ai", daily=10, estimate=20 / 2, when_spent="fail")

    @app.job(retry=Retry(attempts=5))
    async def greet(ctx: Context, name: str) -> str:
        if name == "careful":
            try:
                return await ctx.step("ask", site.fetch, name, gates=[money])
            except BudgetExceeded:
                return "without"
        if name == "optional":
            return str(await ctx.step("ask", site.fetch, name, optional=True, gates=[money]))
        text = await ctx.step("ask", site.fetch, name, gates=[money])
        await ctx.spend(10)
        return text

    async with at_work(store, app, **PATIENT):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
        dead = await seen(store, await enqueue(store))
        careful = await seen(store, await enqueue(store, args='{"name":"careful"}'))
        optional = await seen(store, await enqueue(store, args='{"name":"optional"}'))
    assert (dead.state, dead.reason, dead.failures) == (JobState.DEAD, "permanent failure", 1)
    assert "BudgetExceeded: budget exceeded: ai: 10 of 10 spent" in str(dead.last_error)
    assert careful.result == '"without"'
    assert (optional.result, optional.reason) == ('"None"', "done with warnings")
    assert len(site.calls) == 1


async def test_a_breaker_before_a_step_opens_holds_and_closes_by_a_trial(store: Store, clock: ManualClock) -> None:
    app, is_down, calls = App(UNUSED), [True], list[str]()

    async def call(name: str) -> None:
        calls.append(name)
        if is_down[0]:
            raise OSError("down")

    @app.job(retry=Retry(attempts=9, backoff=Backoff.fixed("1s")))
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("call", call, name, breaker=Breaker("ca", failures=2, open_for="1m"))

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT) as shift:
        await seen(store, job, JobState.RETRYING)
        clock.move(2 * SECOND)
        await until(lambda: bool(shift.told(BreakerOpened)))
        clock.move(2 * SECOND)
        held = await seen(store, job, JobState.PAUSED)
        assert held.reason.startswith("circuit breaker open: ca: 2 failures within 1m")
        assert (len(calls), held.failures) == (2, 2)
        is_down[0] = False
        clock.move(MINUTE)
        await seen(store, job, JobState.SUCCEEDED)
        await until(lambda: bool(shift.told(BreakerClosed)))
    assert len(calls) == 3


async def test_steps_that_wait_together_park_together(store: Store, clock: ManualClock) -> None:
    app, site = App(UNUSED), Site()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        gates = [Rate(1, "1m", name="psi")]
        await asyncio.gather(*(ctx.step(f"fetch {n}", site.fetch, name, gates=gates) for n in range(3)))

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        for done in (1, 2):
            await until(lambda done=done: len(site.calls) == done)  # type: ignore[misc]
            await seen(store, job, JobState.PAUSED)
            clock.move(MINUTE)
        await seen(store, job, JobState.SUCCEEDED)
    assert (await show(store, job)).failures == 0


async def test_a_slot_before_a_step_is_refused_by_name(store: Store) -> None:
    app, site, refused = App(UNUSED), Site(), list[str]()
    wrong: list[Any] = [[Concurrency(1)], [Rate(1, "1s", key="nobody")], ["6/m"], Rate(1, "1s")]

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        for gates in wrong:
            with pytest.raises(SettingsError) as error:
                await ctx.step("fetch", site.fetch, name, gates=gates)
            refused.append(str(error.value))

    async with at_work(store, app, **PATIENT):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert [text.partition(" ")[0] for text in refused] == ["gates", "rate.key", "gates", "gates"]
    assert "cannot hold a Concurrency" in refused[0]
    assert site.calls == []


async def test_a_gate_before_a_step_after_a_transaction_is_refused(store: Store) -> None:
    app, site = App(UNUSED), Site()

    @app.job(retry=ONCE)
    async def greet(ctx: Context, name: str) -> None:
        async with ctx.transaction():
            pass
        await ctx.step("fetch", site.fetch, name, gates=[Rate(1, "1s")])

    async with at_work(store, app):
        dead = await seen(store, await enqueue(store))
    assert "ctx.step() with retry, optional or gates after ctx.transaction()" in str(dead.last_error)


async def test_gates_before_steps_in_processes_of_their_own(real_time_store: Store) -> None:
    """They hold, spend and tell breakers by way of the worker."""
    store = real_time_store
    async with at_work(store, isolated) as shift:
        first = await seen(store, await enqueue(store, kind="plain", args='{"url":"a"}'))
        second = await seen(store, await enqueue(store, kind="eventual", args='{"url":"b"}'), JobState.PAUSED)
        third = await seen(store, await enqueue(store, kind="plain", args='{"url":"c"}'), JobState.PAUSED)
        await seen(store, await enqueue(store, kind="broken", args="{}"), JobState.DEAD)
        await until(lambda: bool(shift.told(BreakerOpened)))
    assert (first.state, first.result) == (JobState.SUCCEEDED, '"read a"')
    for view in (second, third):
        assert view.reason.startswith("rate limited: psi: 1 of 1 starts in 1d")
    assert await store.spent("ai", first.created_at - DAY) == 0.5


async def test_a_sandbox_asks_the_gates_of_steps_too() -> None:
    app, site = App(UNUSED), Site()

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("psi", site.fetch, name, gates=[Rate(2, "1m")])

    async with Sandbox(app) as sandbox:
        for name in "abcde":
            await greet.enqueue(name)
        await sandbox.drain()
        assert len(site.calls) == 2
        await sandbox.drain(travel=True)
        assert sorted(site.calls) == list("abcde")
