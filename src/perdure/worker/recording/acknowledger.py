"""Records what became of jobs: in batches, at once, and whatever happens to the database.

Transitions collect while a flush is under way and go out together when it ends; the first one after a quiet time goes
out at the end of the same turn of the event loop. So nothing waits for a timer, a batch is as large as the load makes
it, and a kill repeats only what ended while one flush took place. While the database is away, full or read-only the
batch is kept and tried again until it is written: a finished job's acknowledgement is never dropped while the process
lives. A record that fails for a reason of its own holds up nobody: it is tried again after the others, or, if its
content is to blame, the job goes to the dead letters with the cause in its place.

A flush that failed midway may have been committed all the same. When it is tried again, claims that come back as stale
are therefore counted as unsure, not as stale writes. The same holds for one whose task was cancelled: a program that
ends cancels all its tasks, and does not mean the records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition, died
from perdure.domain.operate.audit import Audited
from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter, JobDied, RecordRefused, StaleWrites
from perdure.lifecycle.outage import Outage
from perdure.lifecycle.process.watchdog import StoreCall
from perdure.policy.failures import MESSAGE_LIMIT, storable
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.claims import ClaimStore
from perdure.storage.records import Acknowledged

_CONTENT: Final = (ValueError, TypeError, OverflowError)  # ArgumentError among them: trying again cannot help


class Acknowledger:
    """The one way from a finished attempt to the store."""

    def __init__(
        self,
        store: ClaimStore,
        emitter: Emitter,
        batch: int,
        on_room: Callable[[], None],
        on_written: Callable[[list[Transition]], None] = lambda _: None,
        on_ended: Callable[[Iterable[JobId]], None] = lambda _: None,
        audit: Collection[Audited] = frozenset(),
        outage: OutageLimits = DEFAULT_OUTAGE,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._batch = batch
        self._on_room = on_room
        self._on_written = on_written
        self._on_ended = on_ended
        self._audit = audit
        self._pending: list[Transition] = []
        self._in_flight: list[Transition] = []
        self._task: asyncio.Task[None] | None = None
        self._cut_off = False
        self._given_up = False
        self._outage = Outage("acknowledge", emitter, outage)
        self.call = StoreCall("acknowledge")
        self.applied = 0
        self.stale = 0
        self.unsure = 0

    @property
    def backlog(self) -> int:
        """Attempts that have ended and are not recorded yet."""
        return len(self._pending) + len(self._in_flight)

    @property
    def claims(self) -> list[Claim]:
        """Whose ends are not recorded yet."""
        return [move.claim for move in (*self._pending, *self._in_flight)]

    def add(self, transition: Transition) -> None:
        """Take charge of one transition."""
        self._pending.append(transition)
        if self._task is None:
            self._begin()

    def note(self, answer: Acknowledged, job_id: JobId) -> None:
        """Count what was recorded by another way: together with what its handler wrote."""
        self._count(answer)
        self._on_ended([job_id])

    async def drain(self) -> None:
        """Wait until everything is recorded."""
        while self._task is not None:
            await asyncio.wait([self._task])
            await asyncio.sleep(0)  # its end is noted a moment later

    def give_up(self) -> None:
        """Leave what is not recorded to those who rescue: the process is about to end."""
        self._given_up = True

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._flush_all())
        self._task.add_done_callback(self._flushed)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._cut_off = bool(self._in_flight)
        self._pending[:0], self._in_flight = self._in_flight, []
        is_broken = not task.cancelled() and task.exception() is not None
        if self._pending and not (is_broken or self._given_up):
            self._begin()

    async def _flush_all(self) -> None:
        while self._pending:
            self._in_flight, self._pending = self._pending[: self._batch], self._pending[self._batch :]
            unsure, self._cut_off = self._cut_off, False
            again = await self._write(self._in_flight, unsure=unsure)
            self._pending += again
            self._in_flight = []
            self._on_room()

    async def _write(self, batch: list[Transition], *, unsure: bool = False) -> list[Transition]:
        """Record these; what comes back is to be tried again later."""
        replaced = False
        while True:
            try:
                with self.call:
                    answer = await self._store.acknowledge(batch, self._audit)
            except (StoreUnavailable, StoreRefused) as error:  # away, or full, or read-only: for all records alike
                unsure = unsure or isinstance(error, StoreUnavailable)
                await self._outage.wait_out(error)
                continue
            except Exception as error:  # noqa: BLE001 - one bad record must not take the others with it
                if len(batch) > 1:
                    return [left for one in batch for left in await self._write([one], unsure=unsure)]
                if replaced or not isinstance(error, _CONTENT):
                    await self._outage.wait_out(error)
                    return batch
                batch, replaced = [self._refused(batch[0], error)], True
                continue
            self._settled(answer, unsure=unsure)
            self._on_written(batch)
            self._on_ended(move.claim.job_id for move in batch)
            return []

    def _refused(self, move: Transition, error: Exception) -> Transition:
        claim, why = move.claim, f"{type(error).__name__}: {error}"
        self._emitter.emit(RecordRefused(claim.job_id, claim.kind, why))
        message = storable(f"the end of the attempt ({move.reason.value}) could not be recorded: {why}", MESSAGE_LIMIT)
        instead = died(claim, Reason.PERMANENT, Failure("RecordRefused", message))
        self._emitter.emit(JobDied.by(instead))
        return instead

    def _settled(self, answer: Acknowledged, *, unsure: bool) -> None:
        self._outage.succeeded()
        if unsure:
            self.unsure += len(answer.stale)
            answer = Acknowledged(answer.applied)
        self._count(answer)

    def _count(self, answer: Acknowledged) -> None:
        self.applied += answer.applied
        if answer.stale:
            self.stale += len(answer.stale)
            self._emitter.emit(StaleWrites(tuple(claim.job_id for claim in answer.stale)))
