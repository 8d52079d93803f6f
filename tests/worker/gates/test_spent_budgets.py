"""A budget that is spent: its jobs wait, or they fail (C10)."""

from __future__ import annotations

import pytest
from tests.support.builders.gates import PATIENT
from tests.support.builders.jobs import DAY, MINUTE, enqueue
from tests.support.working import at_work, seen

from perdure import App, Budget, BudgetExceeded, Context, JobState, Rate, Retry, SettingsError
from perdure.clock import ManualClock
from perdure.domain.operate.audit import By
from perdure.events import JobDied
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

UNUSED = "sqlite:///unused.db"


async def spend_all(ctx: Context) -> None:
    await ctx.spend(10)


async def test_c10_a_job_fails_instead_of_waiting_and_names_the_budget(store: Store, clock: ManualClock) -> None:
    app, ran = App(UNUSED), list[str]()

    @app.job(
        gates=[Rate(99, "1d"), Budget("other", daily=1), Budget("ai", daily=10, estimate=4, when_spent="fail")],
        retry=Retry(attempts=5),
    )
    async def greet(ctx: Context, name: str) -> None:
        ran.append(name)
        await ctx.spend(10, "ai")

    async with at_work(store, app, **PATIENT) as shift:
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
        dead = await seen(store, await enqueue(store))
        assert (dead.state, dead.reason, dead.failures) == (JobState.DEAD, "permanent failure", 1)
        assert "BudgetExceeded: budget exceeded: ai: 10 of 10 spent in 1d, estimate 4" in str(dead.last_error)
        assert [event.job_id for event in shift.told(JobDied)] == [dead.id]
        assert shift.worker.held == {}
        clock.move(DAY)
        assert await store.requeue(JobFilter(ids=(dead.id,)), By("ann"), 1)
        await seen(store, dead.id, JobState.SUCCEEDED)
    assert len(ran) == 2


async def test_c10_a_job_that_comes_back_is_not_failed_for_what_it_spent_itself(
    store: Store, clock: ManualClock
) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("ai", daily=10, estimate=4, when_spent="fail")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.step("spend", spend_all, ctx)
        await ctx.sleep("1m")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job, JobState.WAITING)
        clock.move(2 * MINUTE)
        await seen(store, job, JobState.SUCCEEDED)


async def test_c10_by_default_a_job_waits(store: Store) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("ai", daily=10, estimate=4)])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.spend(10)

    async with at_work(store, app, **PATIENT):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
        assert (await seen(store, await enqueue(store), JobState.PAUSED)).reason.startswith("budget exceeded: ai")


def test_what_becomes_of_a_job_is_one_of_two_words() -> None:
    with pytest.raises(SettingsError, match='must be "pause" or "fail", got \'wait\''):
        Budget("ai", daily=1, when_spent="wait")  # type: ignore[arg-type]
    assert "ai" in str(BudgetExceeded("ai: 1 of 1"))
