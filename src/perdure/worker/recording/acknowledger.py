"""Records the ends of attempts: in batches, at once, and through outages of the database.

Transitions collect while a flush is in progress and go out together when it ends; the first one after an idle time goes
out at the end of the same turn of the event loop. So no transition waits for a timer, batches grow with the load, and a
kill repeats only attempts that ended during one flush. While the database is away, full or read-only, the batch is kept
and retried until it is written: the acknowledgement of a finished job is never dropped while the process runs. A record
that fails for a reason of its own delays no other: it is retried after the others, or, if its content is the cause, the
job goes to the dead letters with that error.

A flush that failed midway may still have been committed. On the retry, stale claims are therefore counted as unsure,
not as stale writes. The same applies to a flush whose task was cancelled: a program that ends cancels all its tasks,
but the records must still be written.

Statistics count an attempt once its record is written. One whose claim was lost is left out: the process that rescued
its job has counted it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, JobDied, RecordRefused, StaleWrites
from perdure.lifecycle.outage import Outage
from perdure.lifecycle.process.watchdog import StoreCall
from perdure.policy.decide import refuse_record
from perdure.storage.claims import ClaimStore
from perdure.storage.records import Acknowledged
from perdure.worker.recording.statistics import AttemptCounts, Ended
from perdure.worker.settings import WorkerSettings

_CONTENT: Final = (ValueError, TypeError, OverflowError)  # including ArgumentError: a retry cannot help


class RecordOwner(Struct, frozen=True, kw_only=True, eq=False):
    """What an acknowledger reports to its owner. `counts` None: there are no statistics."""

    on_room: Callable[[], None]  # transitions were written: more may be recorded
    on_written: Callable[[list[Transition]], None]
    on_ended: Callable[[Iterable[JobId]], None]  # these jobs are final
    on_stored: Callable[[str, str], None] = lambda _queue, _kind: None  # the next link of a chain was enqueued
    counts: AttemptCounts | None = None


class Acknowledger:
    """The one way from a finished attempt to the store."""

    def __init__(
        self,
        store: ClaimStore,
        emitter: Emitter,
        settings: WorkerSettings,
        owner: RecordOwner,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._batch = settings.ack_batch
        self._on_room = owner.on_room
        self._on_written = owner.on_written
        self._on_ended = owner.on_ended
        self._on_stored = owner.on_stored
        self._counts = owner.counts
        self._audit = settings.audit
        self._pending: list[Ended] = []
        self._in_flight: list[Ended] = []
        self._task: asyncio.Task[None] | None = None
        self._cut_off = False
        self._given_up = False
        self._outage = Outage("acknowledge", emitter, settings.outage)
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
        """The claims whose ends are not recorded yet."""
        return [move.claim for move, _, _ in (*self._pending, *self._in_flight)]

    def add(self, transition: Transition, started: float | None = None, ended: float = 0.0) -> None:
        """Record one transition: of an attempt that ran between these times of the monotonic clock, or of none."""
        self._pending.append((transition, started, ended))
        if self._task is None:
            self._begin()

    def note(self, answer: Acknowledged, job_id: JobId) -> None:
        """Count an attempt that was recorded together with its handler's writes."""
        self._count(answer)
        self._on_ended([job_id])

    async def drain(self) -> None:
        """Wait until everything is recorded."""
        while self._task is not None:
            await asyncio.wait([self._task])
            await asyncio.sleep(0)  # it ends a moment later

    def give_up(self) -> None:
        """Leave unrecorded attempts to the rescuer: the process ends soon."""
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

    async def _write(self, batch: list[Ended], *, unsure: bool = False, replaced: bool = False) -> list[Ended]:
        """Record these; returns those to retry later. `replaced`: their own content was refused before."""
        moves = [move for move, _, _ in batch]

        async def acknowledge() -> Acknowledged:
            with self.call:
                return await self._store.acknowledge(moves, self._audit)

        def missed(error: Exception, _wait: float) -> None:  # away, full or read-only: it concerns all records
            nonlocal unsure
            unsure = unsure or isinstance(error, StoreUnavailable)

        try:
            answer = await self._outage.outlast(acknowledge, on_error=missed)
        except Exception as error:  # noqa: BLE001 - one bad record must not fail the others
            if len(batch) > 1:
                return [left for one in batch for left in await self._write([one], unsure=unsure)]
            if not replaced and isinstance(error, _CONTENT):
                [(move, started, ended)] = batch
                instead = self._refused(move, error), started, ended
                return await self._write([instead], unsure=unsure, replaced=True)
            await self._outage.wait_out(error)
            return batch
        self._note_answer(answer, batch, unsure=unsure)
        self._on_written(moves)
        self._on_ended(move.claim.job_id for move in moves)
        return []

    def _refused(self, move: Transition, error: Exception) -> Transition:
        claim, why = move.claim, f"{type(error).__name__}: {error}"
        self._emitter.emit(RecordRefused(claim.job_id, claim.kind, why))
        instead = refuse_record(move, why)
        self._emitter.emit(JobDied.by(instead))
        return instead

    def _note_answer(self, answer: Acknowledged, batch: list[Ended], *, unsure: bool) -> None:
        if unsure:
            self.unsure += len(answer.stale)
            answer = replace(answer, stale=())
        self._count(answer)
        if self._counts is not None:
            self._counts.recorded(batch, answer.stale)

    def _count(self, answer: Acknowledged) -> None:
        self.applied += answer.applied
        for queue, kind in answer.links:
            self._on_stored(queue, kind)
        if answer.stale:
            self.stale += len(answer.stale)
            self._emitter.emit(StaleWrites(tuple(claim.job_id for claim in answer.stale)))
