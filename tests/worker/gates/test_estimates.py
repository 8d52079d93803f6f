"""What a job is expected to spend: reserved while it runs, and by its arguments (C11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.builders.gates import PATIENT, some, standing
from tests.support.builders.jobs import DAY, MINUTE, enqueue, show
from tests.support.working import at_work, found, seen

from perdure import App, Budget, Context, JobState, PayloadError, SettingsError
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.events import GateNearlyFull
from perdure.storage.port import Store
from perdure.testing import Sandbox

UNUSED = "sqlite:///unused.db"


def by_pages(arguments: Mapping[str, Any]) -> float:
    """What as many pages cost."""
    cost: float = arguments["pages"] * 0.5
    return cost


async def test_c11_a_job_that_sleeps_has_spent_what_it_has_spent(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("ai", daily=100, estimate=4)])
    async def greet(ctx: Context, name: str) -> None:
        async def pay() -> None:
            await ctx.spend(1)

        await ctx.step("pay", pay)
        await ctx.sleep("1m")
        await ctx.sleep("2m")

    job = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        for _ in range(2):
            await found(lambda: asleep(store, job, clock))
            assert await store.spent("ai", clock.now() - DAY) == 1
            clock.move(2 * MINUTE)
        await seen(store, job, JobState.SUCCEEDED)
    assert await store.spent("ai", clock.now() - DAY) == 1


async def asleep(store: Store, job_id: JobId, clock: ManualClock) -> bool:
    """Whether the job waits for a time to come."""
    view = await show(store, job_id)
    return view.state is JobState.WAITING and view.due_at is not None and view.due_at > clock.now()


async def test_c11_an_estimate_may_follow_from_the_arguments(store: Store, clock: ManualClock) -> None:
    """Three of 4 fit into 12 at the same time, and one of 13 never does."""
    app = App(UNUSED)
    gate = Budget("ai", daily=12, estimate=by_pages)

    @app.job(gates=[gate])
    async def greet(ctx: Context, pages: int = 8) -> None:
        await ctx.sleep("1h")

    assert gate.estimate_for({"pages": 3}) == 1.5
    await some(store, 2, args='{"pages":12}')
    async with at_work(store, app, **PATIENT) as shift:
        await standing(store, waiting=2)
        assert shift.told(GateNearlyFull)[0].used == 12
    with pytest.raises(PayloadError, match=r"budget.estimate of ai \(13\) is more than budget.daily \(12\)"):
        await greet.enqueue(26)


@pytest.mark.parametrize(
    ("estimate", "says"),
    [
        (lambda _: "much", "must be a number of 0 or more, got 'much'"),
        (lambda _: -1, "must be a number of 0 or more, got -1"),
        (lambda _: float("nan"), "must be a number of 0 or more, got nan"),
        (lambda _: True, "must be a number of 0 or more, got True"),
        (lambda arguments: arguments["page"], "raised KeyError: 'page'"),
        (lambda _: 99, "(99) is more than budget.daily (10): no job could ever start"),
    ],
)
async def test_an_estimate_that_is_none_is_refused_and_kills_what_is_stored_already(
    store: Store, estimate: Any, says: str
) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("ai", daily=10, estimate=estimate)])
    async def greet(name: str) -> None: ...

    with pytest.raises(PayloadError) as refused:
        await greet.enqueue("Ada")
    assert f"budget.estimate of ai {says}" in str(refused.value)
    with pytest.raises(PayloadError):
        greet.call("Ada")
    async with at_work(store, app):
        dead = await seen(store, await enqueue(store))
    assert (dead.state, dead.reason) == (JobState.DEAD, "arguments do not fit the handler")
    assert f"budget.estimate of ai {says}" in str(dead.last_error)
    assert await store.spent("ai", dead.created_at - DAY) == 0


def test_a_bad_estimate_is_refused_where_it_is_declared() -> None:
    with pytest.raises(SettingsError, match=r"budget\.estimate must be a number of 0 or more, got 'x'"):
        Budget("ai", daily=1, estimate="x")  # type: ignore[arg-type]


async def test_c11_what_is_spent_takes_the_place_of_an_estimate_by_arguments() -> None:
    """What was estimated is told, and not again when less was spent."""
    app, told = App(UNUSED), list[GateNearlyFull]()

    @app.job(gates=[Budget("ai", daily=10, estimate=by_pages)])
    async def greet(ctx: Context, pages: int) -> None:
        await ctx.spend(pages * 0.25)

    app.events.subscribe(lambda event: told.append(event) if isinstance(event, GateNearlyFull) else None)
    async with Sandbox(app) as sandbox:
        await greet.enqueue(16)
        await sandbox.drain()
    assert [(event.used, event.limit) for event in told] == [(8, 10)]
