"""Random walks through the port, judged step by step by the model, on both engines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.model.ledger import Ledger
from tests.support.builders.jobs import A_FAILURE, INSTANT, MINUTE, SECOND, a_job, a_key, apply, claim_some, employ

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim, JobView, OnConflict
from perdure.domain.jobs.states import ACTIVE, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import DuplicateJobError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

NOTHING_KEPT: Final = Keep(succeeded=timedelta(0), cancelled=timedelta(0), dead=timedelta(0))
# READY is in each: a job that runs takes no key it did not have before.
DECLARED: Final = (
    ACTIVE,
    ACTIVE - {JobState.RUNNING},
    ACTIVE - {JobState.WAITING, JobState.RETRYING, JobState.PAUSED},
    frozenset({JobState.READY, JobState.RUNNING}),
    frozenset(JobState),
)
DECISIONS: Final[tuple[Callable[[Claim], transition.Transition], ...]] = (
    lambda claim: transition.succeeded(claim, "1", ()),
    lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE),
    lambda claim: transition.retrying(claim, Reason.TIMED_OUT, A_FAILURE, timedelta(0)),
    lambda claim: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
    lambda claim: transition.waiting(claim, Reason.SNOOZED, 2 * MINUTE),
    lambda claim: transition.paused(claim, Reason.PAUSED, None),
    transition.released,
    lambda claim: transition.cancelled(claim, None),
)

# A step is the name of a method of the walk and five numbers, of which it takes as many as it needs.
Step = tuple[str, tuple[int, int, int, int, int]]
NUMBERS: Final = {
    "insert": 5,
    "claim": 1,
    "acknowledge": 2,
    "promote": 1,
    "die": 0,
    "requeue": 1,
    "cancel": 1,
    "run_now": 1,
    "purge": 1,
    "prune": 0,
}
OFTEN: Final = ("insert", "insert", "insert", "claim", "claim", "acknowledge", "acknowledge", "acknowledge", "promote")


@dataclass
class Walk:
    """One example: a store, the model beside it, and every claim that was ever given."""

    store: Store
    clock: ManualClock
    worker_id: WorkerId
    ledger: Ledger
    claims: list[Claim] = field(default_factory=list)

    async def take(self, step: Step) -> None:
        name, numbers = step
        method: Callable[..., Awaitable[None]] = getattr(self, name)
        await method(*numbers[: NUMBERS[name]])

    async def insert(self, key: int, declared: int, conflict: int, late: int, priority: int) -> None:
        unique = None
        if key % 4:
            dead_for = MINUTE if declared % 2 else None
            on_conflict = list(OnConflict)[conflict % 3]
            unique = a_key(f"k{key % 2}", DECLARED[declared % len(DECLARED)], dead_for, on_conflict)
        # What a time of its own does to the job it replaces is not for the model to say.
        delay = MINUTE if late % 3 == 0 and not (unique and unique.on_conflict is OnConflict.REPLACE) else None
        job = a_job(unique=unique, delay=delay, priority=priority % 3)
        try:
            [receipt] = await self.store.insert([job])
        except DuplicateJobError as refusal:
            self.ledger.refused(job, refusal.job_id)
        else:
            self.ledger.insert(job, receipt)

    async def claim(self, limit: int) -> None:
        claims = await claim_some(self.store, self.worker_id, limit % 3 + 1)
        self.ledger.claim(limit % 3 + 1, claims)
        self.claims += claims

    async def acknowledge(self, which: int, decision: int) -> None:
        """One of the last claims given, held or not, says what became of it."""
        if self.claims:
            move = DECISIONS[decision % len(DECISIONS)](self.claims[-1 - which % min(len(self.claims), 4)])
            answer = await self.store.acknowledge([move])
            assert answer.stale == (() if answer.applied else (move.claim,))
            self.ledger.acknowledge(move, applied=answer.applied == 1)

    async def promote(self, wait: int) -> None:
        self.clock.move((0, 30, 60, 300)[wait % 4] * SECOND)
        await self.store.promote(1_000)
        self.ledger.promote({view.id: view for view in await self.look()})

    async def die(self) -> None:
        """The worker dies; a rescuer gives back what it held, and a new worker comes."""
        await self.store.retire(self.worker_id)
        assert await claim_some(self.store, self.worker_id) == []
        orphans = await self.store.orphans(1_000)
        held = {entry.job_id for entry in self.ledger.jobs.values() if entry.held}
        assert {orphan.claim.job_id for orphan in orphans} == held
        for orphan in orphans:
            move = transition.crashed(orphan.claim, A_FAILURE)
            await apply(self.store, move)
            self.ledger.acknowledge(move, applied=True)
        self.worker_id = await employ(self.store)

    async def requeue(self, which: int) -> None:
        if job_id := self.pick(which):
            done = await self.store.requeue(JobFilter(ids=(job_id,)), By("ops"), 1)
            self.ledger.requeue(job_id, done=done == [job_id])

    async def cancel(self, which: int) -> None:
        if job_id := self.pick(which):
            done = await self.store.cancel(JobFilter(ids=(job_id,)), By("ops"), 1)
            self.ledger.cancel(job_id, done=done == [job_id])

    async def run_now(self, which: int) -> None:
        if job_id := self.pick(which):
            done = await self.store.run_now(JobFilter(ids=(job_id,)), By("ops"), 1)
            view = await self.store.job(job_id)
            assert view
            self.ledger.run_now(job_id, view, done=done == [job_id])

    async def purge(self, which: int) -> None:
        if job_id := self.pick(which):
            done = await self.store.purge(JobFilter(ids=(job_id,)), By("ops"), 1)
            self.ledger.delete(job_id, done=done == [job_id])

    async def prune(self) -> None:
        self.clock.move(INSTANT)
        assert await self.store.prune(NOTHING_KEPT, 1_000) == self.ledger.prune()

    def pick(self, which: int) -> JobId | None:
        ids = list(self.ledger.jobs)
        return ids[which % len(ids)] if ids else None

    async def look(self) -> list[JobView]:
        return await self.store.jobs(JobFilter(), Page(limit=1_000))

    async def end(self) -> None:
        """Leave an empty store behind, by the port's own means."""
        await self.store.retire(self.worker_id)
        await apply(self.store, *[transition.cancelled(o.claim, None) for o in await self.store.orphans(1_000)])
        await self.store.cancel(JobFilter(), By("ops"), 1_000)
        await self.store.purge(JobFilter(), By("ops"), 1_000)
        assert await self.look() == []


STEPS: Final[st.SearchStrategy[Step]] = st.tuples(
    st.sampled_from((*OFTEN, *NUMBERS)), st.tuples(*(st.integers(0, 59) for _ in range(5)))
)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=10, max_size=40))
async def test_no_walk_leaves_the_model(store: Store, clock: ManualClock, steps: list[Step]) -> None:
    """Whatever is called in whatever order, each job is in one place, by a legal move, and each key has one holder."""
    walk = Walk(store, clock, await employ(store), Ledger(clock))
    try:
        for step in steps:
            await walk.take(step)
            walk.ledger.agrees_with(await walk.look())
    finally:
        await walk.end()
