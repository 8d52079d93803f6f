"""What holds jobs back, by reason and kind: for those who ask what needs a person."""

from __future__ import annotations

from tests.support.builders.jobs import HOUR, MINUTE, apply, start

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import Reason
from perdure.storage.operate.diagnosis import PausedJobs
from perdure.storage.port import Store

NO_HANDLER, SPENT = Reason.UNKNOWN_KIND, Reason.BUDGET_EXCEEDED


async def test_jobs_that_are_held_back_are_counted_by_reason_and_kind(store: Store, clock: ManualClock) -> None:
    began = await store.now()
    for kind, reason in (("pdf", NO_HANDLER), ("pdf", NO_HANDLER), ("ask", SPENT), ("ask", Reason.RATE_LIMITED)):
        await apply(store, transition.paused(await start(store, kind=kind), reason, HOUR, note="openai"))
        clock.move(MINUTE)
    found = await store.paused({NO_HANDLER, SPENT}, 100)
    assert found == [
        PausedJobs(SPENT, "ask", "openai", 1, began + 2 * MINUTE),
        PausedJobs(NO_HANDLER, "pdf", "openai", 2, began),
    ]
    assert await store.paused({Reason.ON_HOLD}, 100) == []


async def test_no_more_jobs_are_looked_at_than_the_cap(store: Store) -> None:
    for _ in range(3):
        await apply(store, transition.paused(await start(store), NO_HANDLER, HOUR))
    [found] = await store.paused({NO_HANDLER}, 2)
    assert found.jobs == 2
