"""An attempt counts once: when its record is written, unless its claim was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from tests.support.builders.jobs import apply, claim_some, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.domain.operate.statistics import Ending
from perdure.errors import ArgumentError, StoreUnavailable
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged
from perdure.worker.recording.acknowledger import Acknowledger, RecordOwner
from perdure.worker.recording.statistics import AttemptCounts
from perdure.worker.settings import WorkerSettings

A_FAILURE = Failure("ValueError", "no", None)


def acknowledger_of(store: object, counts: AttemptCounts) -> Acknowledger:
    owner = RecordOwner(on_room=lambda: None, on_written=lambda _moves: None, on_ended=lambda _ids: None, counts=counts)
    return Acknowledger(store, Emitter(), WorkerSettings(), owner)  # type: ignore[arg-type] # a store, or one around it


def endings(counts: AttemptCounts) -> dict[Ending, int]:
    found: dict[Ending, int] = {}
    for count in counts.take():
        found[count.ending] = found.get(count.ending, 0) + count.jobs
    return found


async def test_an_attempt_whose_claim_was_lost_counts_only_as_a_stale_acknowledgement(
    store: Store, clock: ManualClock
) -> None:
    """Its rescuer has counted it as crashed."""
    for _ in range(3):
        await enqueue(store)
    lost, failed, kept = await claim_some(store, await employ(store), 3)
    await apply(store, transition.crashed(lost, A_FAILURE))
    counts = AttemptCounts(clock)
    acknowledger = acknowledger_of(store, counts)
    acknowledger.add(transition.succeeded(lost, None, ()), 1.0, 2.0)
    acknowledger.add(transition.died(failed, Reason.EXHAUSTED, A_FAILURE), 1.0, 2.0)
    acknowledger.add(transition.succeeded(kept, None, ()), 1.0, 2.0)
    assert endings(counts) == {}, "nothing is recorded yet"
    await acknowledger.drain()
    assert endings(counts) == {Ending.SUCCEEDED: 1, Ending.DIED: 1}
    assert (acknowledger.stale, acknowledger.applied) == (1, 2)


class Unsteady:
    """A store that answers a first call with these errors, after it has committed it or not."""

    def __init__(self, store: Store, *errors: Exception, commits: bool) -> None:
        self._store = store
        self._errors = list(errors)
        self._commits = commits

    async def acknowledge(self, moves: Sequence[Transition], audit: Collection[Audited]) -> Acknowledged:
        if self._errors:
            if self._commits:
                await self._store.acknowledge(moves, audit)
            raise self._errors.pop(0)
        return await self._store.acknowledge(moves, audit)


async def test_an_attempt_whose_record_was_committed_without_an_answer_counts_once(
    store: Store, clock: ManualClock
) -> None:
    """The retry finds its claim gone, because it was written already."""
    await enqueue(store)
    [claim] = await claim_some(store, await employ(store), 1)
    counts = AttemptCounts(clock)
    acknowledger = acknowledger_of(Unsteady(store, StoreUnavailable("away"), commits=True), counts)
    acknowledger.add(transition.succeeded(claim, None, ()), 1.0, 2.0)
    await asyncio.wait_for(acknowledger.drain(), 30)
    assert endings(counts) == {Ending.SUCCEEDED: 1}
    assert (acknowledger.stale, acknowledger.unsure) == (0, 1)


async def test_an_attempt_whose_record_is_refused_counts_as_it_is_recorded(store: Store, clock: ManualClock) -> None:
    await enqueue(store)
    [claim] = await claim_some(store, await employ(store), 1)
    counts = AttemptCounts(clock)
    acknowledger = acknowledger_of(Unsteady(store, ArgumentError("result", "is odd"), commits=False), counts)
    acknowledger.add(transition.succeeded(claim, "odd", ()), 1.0, 2.0)
    await asyncio.wait_for(acknowledger.drain(), 30)
    assert endings(counts) == {Ending.DIED: 1}
