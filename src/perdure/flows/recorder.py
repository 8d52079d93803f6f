"""Stores and loads steps for all attempts of one worker.

Steps are written in batches: the first goes out at once, and those that arrive while it is in progress go out together
when it ends. So a step waits for no timer, and a hundred attempts share one commit. Steps are read in the same way.

Once a step is being written, it is written to the end, even if its attempt is told to stop meanwhile: completed work
must not be repeated for lack of a record. While the database is away the handler waits, because further work could not
be recorded either. A lost claim stops the attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from perdure.clock import Clock
from perdure.domain.flows.flow import Progress, StepRecord, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.errors import ConflictError
from perdure.events import Emitter, StoreTrouble
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.lifecycle.outage import Outage
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.port import Store

Result = TypeVar("Result")

SHORT_WAIT: Final = timedelta(seconds=5)
"""A wait up to this long stays in the process; for a longer one the job is parked."""

PROGRESS_INTERVAL_SECONDS: Final = 0.5
_STEPS_PER_CALL: Final = 500


class ProgressSource(Protocol):
    """An attempt that reports progress."""

    claim: Claim

    def take_progress(self) -> Progress | None:
        """Its last report, once."""


class Recorder:
    """Stores and loads the steps of attempts; used on the worker's event loop only (`Journal` crosses over to it)."""

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        clock: Clock,
        on_lost: Callable[[Claim], None],
        outage: OutageLimits = DEFAULT_OUTAGE,
        hooks: Hooks = NO_HOOKS,
    ) -> None:
        self.store = store
        self.hooks = hooks
        self.clock = clock
        self.short_wait = SHORT_WAIT
        self.loop = asyncio.get_running_loop()
        self.emitter = emitter
        self._on_lost = on_lost
        self._limits = outage
        self._writes: list[tuple[StepWrite, asyncio.Future[bool]]] = []
        self._reads: dict[JobId, asyncio.Future[list[StepRecord]]] = {}
        self._writing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._sources: list[ProgressSource] = []
        self._showing: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def load(self, job_id: JobId) -> list[StepRecord]:
        """All steps of a job, in the order in which they began."""
        found = self._reads.get(job_id)
        if found is None:
            found = self._reads[job_id] = self.loop.create_future()
            if self._reading is None:
                self._reading = self.loop.create_task(self._read_all())
        return await asyncio.shield(found)

    async def save(self, claim: Claim, step: StepRecord) -> None:
        """Store a step: durable when it returns. A lost claim stops the attempt, and ConflictError is raised."""
        kept: asyncio.Future[bool] = self.loop.create_future()
        self._writes.append((StepWrite(claim, step), kept))
        if self._writing is None:
            self._writing = self.loop.create_task(self._write_all())
        try:
            is_kept = await asyncio.shield(kept)
        except asyncio.CancelledError:
            await asyncio.wait({kept})
            if not kept.cancelled():
                kept.exception()  # retrieved: a request to stop comes first
            raise
        self.demand(claim, held=is_kept)

    def demand(self, claim: Claim, *, held: bool) -> None:
        """Stop the attempt, and raise ConflictError, if its claim is not `held` any more."""
        if not held:
            self._on_lost(claim)
            raise ConflictError(
                f"this attempt of job {claim.job_id} has lost its claim: another one may run already; stop at once"
            )

    async def ask(self, what: str, call: Callable[[Store], Awaitable[Result]]) -> Result:
        """Call the store, retrying while it is away; `what` names the call in the log.

        The call must be safe to repeat.
        """
        return await Outage(what, self.emitter, self._limits).outlast(lambda: call(self.store))

    def note_progress(self, source: ProgressSource) -> None:
        """Write the progress of an attempt soon: at most one report every half second."""
        self._sources.append(source)
        if self._showing is None:
            self._showing = self.loop.create_task(self._show_all())

    async def show_now(self) -> None:
        """Write all progress reports that are not written yet."""
        async with self._one_at_a_time:  # so that reports in progress are written too when it returns
            sources, self._sources = self._sources, []
            words = {
                source.claim.job_id: (source.claim, word)
                for source in sources
                if (word := source.take_progress()) is not None
            }
            if not words:
                return
            try:
                await self.store.save_progress(words)
            except Exception as error:  # noqa: BLE001 - a later word makes up for it; nothing of value is lost
                self.emitter.emit(
                    StoreTrouble("progress", f"{type(error).__name__}: {error}", PROGRESS_INTERVAL_SECONDS)
                )

    async def close(self) -> None:
        """Drop what is in progress: the attempts that still wait for it were abandoned."""
        tasks = [task for task in (self._writing, self._reading, self._showing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _show_all(self) -> None:
        try:
            while self._sources:
                await self.show_now()
                await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)
        finally:
            self._showing = None

    async def _write_all(self) -> None:
        batch: list[tuple[StepWrite, asyncio.Future[bool]]] = []
        try:
            while self._writes:
                batch, self._writes = self._writes[:_STEPS_PER_CALL], self._writes[_STEPS_PER_CALL:]
                await self._write(batch)
        except asyncio.CancelledError:  # the worker has closed
            for _, kept in batch + self._writes:
                kept.cancel()
            raise
        finally:
            self._writing = None

    async def _write(self, batch: list[tuple[StepWrite, asyncio.Future[bool]]]) -> None:
        writes = [write for write, _ in batch]
        try:
            answers = await self.ask("save steps", lambda store: store.save_steps(writes))
        except Exception as error:  # noqa: BLE001 - it is raised where the step was taken
            if len(batch) == 1:
                _fail(batch[0][1], error)
                return
            for one in batch:  # a bad one must not fail the others
                await self._write([one])
            return
        for (_, kept), answer in zip(batch, answers, strict=True):
            if not kept.done():
                kept.set_result(answer)

    async def _read_all(self) -> None:
        wanted: dict[JobId, asyncio.Future[list[StepRecord]]] = {}
        try:
            while self._reads:
                wanted, self._reads = self._reads, {}
                await self._read(wanted)
        except asyncio.CancelledError:  # the worker has closed
            for found in (wanted | self._reads).values():
                found.cancel()
            raise
        finally:
            self._reading = None

    async def _read(self, wanted: dict[JobId, asyncio.Future[list[StepRecord]]]) -> None:
        try:
            found = await self.ask("load steps", lambda store: store.steps(list(wanted)))
        except Exception as error:  # noqa: BLE001 - it is raised where a step was asked for
            for future in wanted.values():
                _fail(future, error)
            return
        for job_id, future in wanted.items():
            if not future.done():
                future.set_result(found.get(job_id, []))


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # retrieved, even if the waiter was told to stop
