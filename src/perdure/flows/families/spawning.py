"""The children of one key: found from an earlier attempt, or spawned.

First the children are stored in one transaction, with ids derived from parent, family and number, so that storing them
again is harmless; then the step is stored. A later attempt finds the step, and through it the children. If they are
missing or cannot be read, the handler goes back to the point that makes them, and they are spawned again under the next
name (`gather#again2`); C5 calls that going back to `ingest`, and staying in `aggregate` if they are there. Each such
decision emits an event.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final, NoReturn

from msgspec.structs import replace

from perdure.domain.flows.child_ids import child_ids
from perdure.domain.flows.flow import Child, FamilyView, NewFamily, StepKind, StepRecord, StepState
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Parked
from perdure.domain.jobs.states import Reason
from perdure.errors import ConflictError, DuplicateChildError, DuplicateJobError, StepError
from perdure.events import FamilyRecovered, FamilyRefused, FamilySpawned
from perdure.flows.families.family import Order
from perdure.flows.journal import Journal
from perdure.storage.port import Store

GENERATIONS_LIMIT: Final = 100
_CHILDREN_PER_CALL: Final = 1_000
_DELETED: Final = "parent job deleted during execution"


class FamilyStep:
    """The step of one family. `given` is the family's own key if another step has spawned it."""

    record: StepRecord
    is_back: bool  # an earlier attempt has started it

    def __init__(self, journal: Journal, key: str, order: Order, given: str | None = None) -> None:
        self.journal = journal
        self.order = order
        self._key = key
        self._given = given
        self._parent = journal.claim.job_id

    @property
    def family(self) -> str:
        """The key under which the children are stored."""
        return self._given or family_key(self._key, self.record.tries)

    async def begin(self) -> FamilyView | None:
        """Find the family; None: there was none, and it is spawned now."""
        found = await self.journal.find(self._key, StepKind.FAMILY)
        self.record = found or self._new_record()
        self.is_back = found is not None
        if found is None:
            if self._given is None:
                await self._spawn()
            await self.journal.save(self.record)
            if self._given is None:
                return None
        elif found.state is StepState.BEGUN and found.due_at and found.begun_at < self.journal.claim.since:
            self.record = replace(found, due_at=self._new_record().due_at, begun_at=self.journal.now)
            await self.journal.save(self.record)  # after a requeue the parent's time starts again
        family = self.family
        view = await self.journal.ask("read family", lambda store: store.family(self._parent, family))
        if view is None:
            await self.begin_again("it has no children")
            return None
        if view.total != len(self.order.children):
            raise self._changed(view.total)
        return view

    async def is_empty(self) -> bool:
        """Whether no children are asked for; refused if there were children before."""
        if self.order.children:
            return False
        if await self.journal.find(self._key, StepKind.FAMILY) is not None:
            raise self._changed("some")
        return True

    async def begin_again(self, because: str) -> None:
        """Spawn the children again, because those of an earlier attempt are unusable."""
        if self._given is not None or self.record.state is not StepState.BEGUN:
            raise StepError(self.family, f"cannot go on: {because}; enqueue the job again")
        await self.journal.emit(self._decision("back to ingest", because))
        self.record = replace(self.record, tries=self.record.tries + 1)
        await self._spawn()
        await self.journal.save(self.record)

    async def stay(self, found: int) -> NoReturn:
        """Wait for these existing children; if an earlier attempt waited for them too, report the decision."""
        if self.is_back:
            await self.journal.emit(self._decision("stays in aggregate", "its children are there", found))
        await self.wait()

    async def wait(self) -> NoReturn:
        """Park until the family is settled, or its time is up."""
        due_at = self.record.due_at
        after = None if due_at is None else due_at - self.journal.now
        await self.journal.park(Parked(Reason.AWAITING_CHILDREN.value, after, family=self.family))

    @property
    def is_late(self) -> bool:
        """Whether the time is up."""
        return self.record.due_at is not None and self.journal.now >= self.record.due_at

    async def children(self, total: int) -> list[Child] | None:
        """All children in order; None: they cannot be read."""
        found: list[Child] = []
        while len(found) < total:
            page = await self.journal.ask("read children", partial(self._page, len(found)))
            if not page:
                return None
            found += page
        for child, job in zip(found, self.order.children, strict=True):
            if child.kind != job.kind:
                raise StepError(
                    self._key,
                    f"spawned {child.kind} as number {child.number} and is now asked for {job.kind}: the handler was"
                    " changed, or its calls depend on something that changes",
                )
        return found

    async def finish(self, result: str | None) -> None:
        """Store that this step is done."""
        self.record = replace(self.record, state=StepState.DONE, result=result)
        await self.journal.save(self.record)

    async def _page(self, first: int, store: Store) -> list[Child]:
        return await store.children(self._parent, self.family, first, _CHILDREN_PER_CALL)

    def _new_record(self) -> StepRecord:
        now, within = self.journal.now, self.order.within
        due_at = None if within is None else now + within
        return StepRecord(
            key=self._key, kind=StepKind.FAMILY, state=StepState.BEGUN, tries=1, due_at=due_at, begun_at=now
        )

    async def _spawn(self) -> None:
        await refuse_too_deep(self.journal, self._key)
        order = self.order
        ids = child_ids(self._parent, self.family, len(order.children))
        family = NewFamily(
            key=self.family,
            children=tuple(replace(job, id=own) for job, own in zip(order.children, ids, strict=True)),
            quorum=order.quorum,
            on_end=order.on_end,
        )
        await store_family(self.journal, family)

    def _changed(self, before: object) -> StepError:
        return StepError(
            self._key,
            f"had {before} children and is now asked for {len(self.order.children)}: the handler was changed, or its"
            " calls depend on something that changes; make them from what steps have returned",
        )

    def _decision(self, decision: str, because: str, found: int = 0) -> FamilyRecovered:
        claim = self.journal.claim
        return FamilyRecovered(claim.job_id, claim.kind, self.family, decision, because, found)


async def store_family(journal: Journal, family: NewFamily) -> None:
    """Store children, once; an attempt that has lost its claim is stopped."""
    journal.spawned = True  # before the outcome is known: a commit in doubt may have happened
    tracer = journal.recorder.hooks.tracer
    if tracer is None:
        await journal.reach(_stored(journal, family), to_the_end=True)
        return
    with tracer.enqueuing() as enqueuing:
        children = tuple(map(enqueuing.stamp, family.children))
        await journal.reach(_stored(journal, replace(family, children=children)), to_the_end=True)


async def _stored(journal: Journal, family: NewFamily) -> None:
    recorder, claim = journal.recorder, journal.claim
    try:
        is_held = await recorder.ask("spawn", lambda store: store.spawn(claim, family))
    except DuplicateJobError as duplicate:
        raise _refused_child(family, duplicate) from duplicate
    if is_held:
        pairs = Counter((job.queue, job.kind) for job in family.children)
        stored = tuple((*pair, jobs) for pair, jobs in pairs.items())
        recorder.emitter.emit(FamilySpawned(claim.job_id, claim.kind, family.key, len(family.children), stored))
        recorder.store.ring({job.queue for job in family.children})
        return
    is_gone = await recorder.ask("look for parent", lambda store: store.job(claim.job_id)) is None
    because = _DELETED if is_gone else "the attempt has lost its claim"
    recorder.emitter.emit(FamilyRefused(claim.job_id, claim.kind, family.key, because))
    try:
        recorder.demand(claim, held=False)
    except ConflictError as lost:
        raise ConflictError(f"{_DELETED}: no children were stored" if is_gone else str(lost)) from None


def _refused_child(family: NewFamily, duplicate: DuplicateJobError) -> DuplicateChildError:
    """Which child it was: the first with this key, or the next one if the first holds the key."""
    number, child = next(
        (number, child)
        for number, child in enumerate(family.children)
        if child.unique is not None and child.unique.key == duplicate.key and child.id != duplicate.job_id
    )
    return DuplicateChildError(family.key, number, child.kind, duplicate.key, duplicate.job_id)


async def refuse_too_deep(journal: Journal, key: str) -> None:
    """Refuse children nested too deep."""
    ancestor, depth = journal.claim.parent, 2  # of children whose parent has no parent
    while ancestor is not None:
        depth += 1
        if depth > GENERATIONS_LIMIT:
            raise StepError(
                key,
                f"would make children of generation {depth}, {GENERATIONS_LIMIT} are allowed: a cycle of parents? "
                "Let the handler end the recursion, or enqueue what is to outlive it",
            )
        ancestor = await journal.ask("look for ancestor", partial(_parent_of, ancestor))


async def _parent_of(job_id: JobId, store: Store) -> JobId | None:
    view = await store.job(job_id)
    return None if view is None else view.parent


def family_key(key: str, generation: int) -> str:
    """The key of a family, from its step's key and how many times it was spawned."""
    return key if generation == 1 else f"{key}#again{generation}"  # no name contains a #
