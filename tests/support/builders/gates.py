"""Jobs before gates: what they say of themselves while they wait, and how many stand where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from tests.support.builders.jobs import enqueue
from tests.support.working import found

from perdure import App, ArgumentError, Budget, Context, JobState, JobView, Retry
from perdure.domain.jobs.ids import JobId
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

PATIENT: Final = {"lease": "40d", "concurrency": 20}
"""Settings of a worker that outlives any journey in time."""


isolated: Final = App("sqlite:///unused.db", retry=Retry(attempts=1))


@isolated.job(isolate=True, gates=[Budget("api", daily=10, estimate=5)])
def pay(ctx: Context, amount: float) -> str:
    """Spend in a process of its own, first from a budget that does not exist."""
    ctx.spend(amount)
    try:
        ctx.spend(amount, "petty cash")
    except ArgumentError as error:
        return str(error)
    return "not refused"


@isolated.job(isolate=True, gates=[Budget("api", daily=10, estimate=5)])
async def pay_later(ctx: Context, amount: float) -> None:
    """The same, in an async handler."""
    await ctx.spend(amount)
    await ctx.spend(amount, "api")


async def some(store: Store, number: int, **changes: Any) -> list[JobId]:
    """Hand in so many jobs, in this order."""
    return [await enqueue(store, **changes) for _ in range(number)]


async def views(store: Store, **which: Any) -> list[JobView]:
    """All jobs that match, the oldest first."""
    return (await store.jobs(JobFilter(**which), Page(500)))[::-1]


async def standing(store: Store, **expected: int) -> list[JobView]:
    """The jobs, once so many of them are in each of these states and none in any other."""

    async def look() -> list[JobView] | None:
        now = await views(store)
        counted = Counter(view.state.value for view in now)
        return now if {state: count for state, count in expected.items() if count} == dict(counted) else None

    return await found(look)


def paused(jobs: Iterable[JobView]) -> list[JobView]:
    """Those that are held back."""
    return [view for view in jobs if view.state is JobState.PAUSED]


def costs(jobs: Iterable[JobView]) -> set[tuple[int, int]]:
    """What they have paid so far: failures and crashes."""
    return {(view.failures, view.crashes) for view in jobs}
