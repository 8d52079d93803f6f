"""A job that comes back without having failed has passed its gates already (C11, G8)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.builders.gates import PATIENT, paused, some, standing
from tests.support.builders.jobs import DAY, MINUTE, enqueue, show
from tests.support.databases.behind import query
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import (
    App,
    Backoff,
    Breaker,
    Budget,
    Concurrency,
    Context,
    JobState,
    Rate,
    Release,
    Retry,
    RetryAfter,
    SettingsError,
    Snooze,
)
from perdure.clock import ManualClock
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

UNUSED = "sqlite:///unused.db"
AT_ONCE = Retry(attempts=9, backoff=Backoff.fixed("0s"))


async def test_c11_jobs_that_sleep_start_once(store: Store, clock: ManualClock) -> None:
    """Two jobs that sleep 10 seconds are done after 10 seconds, and not when the minute is over."""
    app, runs = App(UNUSED), Counter[str]()

    @app.job(gates=[Rate(2, "1m")])
    async def greet(ctx: Context, name: str) -> None:
        runs[ctx.job_id] += 1
        await ctx.sleep("10s")

    jobs = await some(store, 3)
    async with at_work(store, app, **PATIENT):
        await standing(store, waiting=2, paused=1)
        clock.move(MINUTE / 6)
        [held] = paused(await standing(store, succeeded=2, paused=1))
        assert held.reason.startswith("rate limited: greet: 2 of 2 starts in 1m")
        clock.move(MINUTE)
        await seen(store, held.id, JobState.WAITING)
    assert sorted(runs.values()) == [1, 2, 2]
    assert set(jobs) == set(runs)


async def test_c11_a_rate_that_counts_runs_charges_each(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    @app.job(gates=[Rate(2, "1m", counts="runs")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.sleep("10s")

    await some(store, 2)
    async with at_work(store, app, **PATIENT):
        await standing(store, waiting=2)
        clock.move(MINUTE / 6)
        held = paused(await standing(store, paused=2))
        assert {view.reason[:12] for view in held} == {"rate limited"}
        clock.move(MINUTE)
        await standing(store, succeeded=2)


async def test_c11_a_retry_is_a_new_start(store: Store) -> None:
    app, runs = App(UNUSED), list[int]()

    @app.job(gates=[Rate(3, "1h")], retry=AT_ONCE)
    async def greet(ctx: Context, name: str) -> None:
        runs.append(ctx.attempt)
        raise RetryAfter("0s")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        held = await seen(store, job, JobState.PAUSED)
    assert held.reason.startswith("rate limited")
    assert runs == [1, 2, 3]


async def test_c11_a_retry_of_a_job_that_was_parked_is_a_new_start(store: Store) -> None:
    app, runs = App(UNUSED), list[int]()

    @app.job(gates=[Rate(1, "1h")], retry=AT_ONCE)
    async def greet(ctx: Context, name: str) -> None:
        runs.append(ctx.attempt)
        raise Snooze("0s") if len(runs) == 1 else RetryAfter("0s")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.PAUSED)
    assert runs == [1, 1]


@pytest.mark.parametrize("verdict", [Snooze("0s"), Release()])
async def test_c11_what_comes_back_at_no_fault_of_its_own_is_not_charged(store: Store, verdict: Exception) -> None:
    app, runs = App(UNUSED), list[int]()

    @app.job(gates=[Rate(1, "1h")])
    async def greet(ctx: Context, name: str) -> None:
        runs.append(ctx.attempt)
        if len(runs) < 4:
            raise verdict

    async with at_work(store, app, **PATIENT):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert runs == [1, 1, 1, 1]


async def test_g9_a_stop_costs_no_second_start(store: Store) -> None:
    """What the worker gives back when it closes has passed its gates."""
    app, runs = App(UNUSED), list[int]()

    @app.job(gates=[Rate(1, "1h"), Concurrency(1)])
    async def greet(ctx: Context, name: str) -> None:
        runs.append(ctx.token)
        if len(runs) == 1:
            await ctx.wait_closing()
            raise Release

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT | {"stop_timeout": "5s"}):
        await until(lambda: bool(runs))
    assert (await show(store, job)).state is JobState.READY
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.SUCCEEDED)
    assert len(runs) == 2


async def test_g8_a_job_that_comes_back_needs_a_slot_again(store: Store, clock: ManualClock) -> None:
    app, inside, most = App(UNUSED), Counter[str](), Counter[str]()

    @app.job(gates=[Concurrency(1), Rate(9, "1h")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.sleep("1m")
        inside["now"] += 1
        most["now"] = max(most["now"], inside["now"])
        await ctx.wait_closing("20ms")
        inside["now"] -= 1

    await some(store, 5)
    async with at_work(store, app, **PATIENT):
        await standing(store, waiting=5)
        clock.move(2 * MINUTE)
        await standing(store, succeeded=5)
    assert most["now"] == 1


async def test_c11_a_budget_lets_a_job_come_back_and_reserves_its_estimate(store: Store, clock: ManualClock) -> None:
    app, reserved = App(UNUSED), list[float]()

    async def spend_all(ctx: Context) -> None:
        await ctx.spend(10)

    @app.job(gates=[Budget("ai", daily=10, estimate=4)])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("spend", spend_all, ctx)
        await ctx.sleep("1m")
        reserved.append(await store.spent("ai", clock.now() - DAY))

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.WAITING)
        late = await enqueue(store)
        held = await seen(store, late, JobState.PAUSED)
        assert held.reason.startswith("budget exceeded: ai: 10 of 10 spent in 1d, estimate 4")
        clock.move(2 * MINUTE)
        await seen(store, job, JobState.SUCCEEDED)
        assert await store.spent("ai", clock.now() - DAY) == 10
    assert reserved == [14]


async def test_c11_a_budget_that_counts_runs_refuses_a_resume(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    async def spend_all(ctx: Context) -> None:
        await ctx.spend(10)

    @app.job(gates=[Budget("ai", daily=10, estimate=4, counts="runs")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("spend", spend_all, ctx)
        await ctx.sleep("1m")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.WAITING)
        clock.move(2 * MINUTE)
        held = await seen(store, job, JobState.PAUSED)
    assert held.reason.startswith("budget exceeded")


async def test_a_breaker_that_is_open_holds_a_job_that_comes_back(store: Store, clock: ManualClock) -> None:
    """It says that the system is down now, whatever was let through before."""
    app = App(UNUSED)

    @app.job(gates=[Rate(1, "1d")], breaker=Breaker("ca", failures=1, open_for="1h"))
    async def greet(ctx: Context, name: str) -> None:
        await ctx.sleep("1m")

    @app.job(breaker=Breaker("ca", failures=1, open_for="1h"))
    async def fail(name: str) -> None:
        raise OSError

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.WAITING)
        await seen(store, await enqueue(store, kind="fail"), JobState.RETRYING)
        clock.move(2 * MINUTE)
        held = await seen(store, job, JobState.PAUSED)
        assert held.reason.startswith("circuit breaker open: ca")
        clock.move(60 * MINUTE)
        await seen(store, job, JobState.SUCCEEDED)


async def test_a_new_life_is_a_new_start(store: Store, clock: ManualClock) -> None:
    app, runs = App(UNUSED), list[int]()

    @app.job(gates=[Rate(1, "1h")], retry=Retry(attempts=1))
    async def greet(ctx: Context, name: str) -> None:
        runs.append(ctx.attempt)
        if len(runs) == 1:
            raise Snooze("0s")
        raise OSError

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.DEAD)
        clock.move(MINUTE)
        assert await store.requeue(JobFilter(ids=(job,)), By("ann"), 1)
        await seen(store, job, JobState.PAUSED)
    assert runs == [1, 1]


async def test_the_release_before_knows_nothing_of_it(store: Store, engine_url: str) -> None:
    """What it has parked is charged again, as it does itself."""
    app = App(UNUSED)

    @app.job(gates=[Rate(1, "1h")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.sleep("1h")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.WAITING)
    query(engine_url, "UPDATE {job} SET gates_passed = NULL")
    assert await store.run_now(JobFilter(ids=(job,)), By("ann"), 1)
    async with at_work(store, app, **PATIENT):
        held = await seen(store, job, JobState.PAUSED)
    assert held.reason.startswith("rate limited")


@pytest.mark.parametrize("gate", [lambda: Rate(1, "1s", counts="jobs"), lambda: Budget("a", daily=1, counts="jobs")])  # type: ignore[arg-type]
def test_what_a_gate_counts_is_checked(gate: Any) -> None:
    with pytest.raises(SettingsError, match='counts must be "attempts" or "runs", got \'jobs\''):
        gate()
