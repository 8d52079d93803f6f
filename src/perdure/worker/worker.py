"""A worker, from opening to closing: it starts and stops its parts, which `wiring` joins.

Opening: register, start the heartbeat and the upkeep, listen for wake-ups, claim. Closing is the reverse: stop
claiming, end the running attempts (see `closing`), record everything, stop listening and the upkeep, unregister.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from types import FrameType
from typing import Any, Final

from perdure.domain.duration import Duration, parse_duration
from perdure.errors import ConflictError, StillRunning, StoreError
from perdure.events import LifespanFailed, WorkerClosed, WorkerClosing, WorkerOpened
from perdure.hooks.lifespan import Lifespans
from perdure.lifecycle.loops.unless_stopped import done_unless_stopped
from perdure.lifecycle.process.stacks import Snapshot
from perdure.storage.operate.kinds import KindRecord
from perdure.worker.claiming.listener import WakeupListener
from perdure.worker.closing import (
    Closing,
    drain_reports,
    end_loops,
    give_back_unknown,
    record_all,
    return_loans,
    write_statistics,
)
from perdure.worker.completion import COMPLETION_TIMEOUT
from perdure.worker.parts import WorkerParts
from perdure.worker.presence.duplicate_names import report_duplicate_names
from perdure.worker.recording.totals import LoopTally, WorkerTally

_SHORTEST_RECORDING_SECONDS: Final = 1.0


class Worker:
    """Runs jobs of an open store until it is stopped. `App.worker()` makes one."""

    def __init__(self, parts: WorkerParts, *, lifespans: Lifespans, records: Sequence[KindRecord] = ()) -> None:
        self._parts = parts
        self._lifespans = lifespans
        self._records = records
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self.name = parts.me.name

    @property
    def opened(self) -> asyncio.Event:
        """Set once the loops are launched and the worker claims."""
        return self._parts.state.opened

    @property
    def recycled(self) -> bool:
        """Whether the worker stops because its process is to be replaced by a fresh one."""
        return self._parts.state.is_recycled

    @property
    def running(self) -> int:
        """How many attempts run."""
        return len(self._parts.attempts.executor.running)

    @property
    def finished(self) -> int:
        """How many attempts have ended here; those whose jobs were released to their queue do not count."""
        return self._parts.attempts.executor.finished

    @property
    def acknowledged(self) -> int:
        """How many attempts are recorded in the store."""
        return self._parts.attempts.acknowledger.applied

    @property
    def held(self) -> dict[str, int]:
        """How many claims gates, breakers and pauses have held back here, by reason."""
        return dict(self._parts.attempts.refusals.held)

    @property
    def stale_writes(self) -> int:
        """How many acknowledgements came too late and changed nothing."""
        return self._parts.attempts.acknowledger.stale

    def tally(self) -> WorkerTally:
        """The counts of this worker since its start, and its current load. Call it on the worker's event loop."""
        parts, attempts = self._parts, self._parts.attempts
        return WorkerTally(
            name=self.name,
            attempts=None if parts.counts is None else parts.counts.totals(),
            stale=attempts.acknowledger.stale,
            running=self.running,
            concurrency=parts.me.concurrency,
            backlog=attempts.acknowledger.backlog,
            loops=[LoopTally(loop.name, loop.ticks, loop.skipped, loop.failed) for loop in parts.loops],
        )

    def stop(self) -> None:
        """Begin to close; `run` returns when that is done."""
        self._parts.state.stop.set()

    def hurry(self) -> None:
        """Close without waiting for handlers to finish: they are asked to stop, and no attempt is used."""
        self._parts.state.is_hurried = True
        self._parts.state.stop.set()

    def describe(self, innermost: FrameType | None = None) -> Snapshot:
        """Everything that this process is doing now; may be called from any thread, and while the loop is blocked.

        The calling thread is shown from `innermost` outwards.
        """
        return self._parts.snapshots.describe(self._loop, innermost)

    def wake(self) -> None:
        """Look for work now."""
        self._parts.fetcher.wake()

    def quiet(self, because: str) -> None:
        """Stop claiming until `loud` removes this reason; running jobs continue."""
        self._parts.phase.quiet(because)

    def loud(self, because: str) -> None:
        """Claim again, unless there is another reason to be quiet."""
        self._parts.phase.loud(because)

    async def started(self) -> None:
        """Wait until the loops are launched and the worker claims; ConflictError if `run` ends before that."""
        signals = [self._loop.create_task(event.wait()) for event in (self.opened, self._parts.state.ended)]
        try:
            await asyncio.wait(signals, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for signal in signals:
                signal.cancel()
        if not self.opened.is_set():
            raise ConflictError(f"worker {self.name} ended before it started: see the error of its run()")

    async def wait_for_completion(self, timeout: Duration = COMPLETION_TIMEOUT) -> None:  # noqa: ASYNC109
        """Stop, and wait until the worker has closed and no attempt and no tick of it runs any more.

        Call it before HTTP and the database close. Past the timeout handlers are asked to stop at once, as by `hurry`,
        and StillRunning lists what still runs.
        """
        limit = parse_duration("timeout", timeout)
        self.stop()
        try:
            await self._parts.completion.wait(limit)
        except StillRunning:
            self.hurry()
            raise

    async def run(self) -> None:
        """Work until stopped, within the lifespans of the app; a stop while these open takes effect at once."""
        state, tracer = self._parts.state, self._parts.around.hooks.tracer
        state.task = asyncio.current_task()
        token = None if tracer is None else tracer.enter(None)  # its attempts belong to no trace of the caller
        try:
            async with AsyncExitStack() as stack:
                opening = stack.enter_async_context(self._lifespans.opened(self._not_closed))
                if await done_unless_stopped(opening, state.stop):
                    await self._work()
        finally:
            if tracer is not None:
                tracer.leave(token)
            state.ended.set()

    async def _work(self) -> None:
        parts, around = self._parts, self._parts.around
        await parts.membership.enter()
        await report_duplicate_names(parts.me, around.store, around.emitter)
        await parts.timekeeping.declare()
        if self._records:
            await around.store.declare_kinds(self._records)
        parts.slow_start.begin()
        parts.loops.start()
        listener = WakeupListener(around.store, around.emitter, parts.fetcher.wake, around.settings.outage)
        self._background(listener.run())
        fetching = self._background(parts.fetcher.run())
        worker_id = parts.membership.worker_id or 0
        around.emitter.emit(WorkerOpened(self.name, worker_id, parts.me.queues, parts.me.concurrency))
        self.opened.set()
        stopping = self._loop.create_task(parts.state.stop.wait())
        parts.watchdog.start()
        try:
            await asyncio.wait([stopping, fetching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._close()
            parts.watchdog.stop()
        if fetching.done() and not fetching.cancelled() and (error := fetching.exception()):
            raise error

    def _not_closed(self, lifespan: str, error: BaseException) -> None:
        self._parts.around.emitter.emit(LifespanFailed(self.name, lifespan, f"{type(error).__name__}: {error}"))

    async def _close(self) -> None:
        parts, attempts = self._parts, self._parts.attempts
        settings, emitter, executor = parts.around.settings, parts.around.emitter, attempts.executor
        stop_at, given_back = self._loop.time() + settings.stop_timeout.total_seconds(), executor.released
        attempts.stages.is_closing = True
        parts.fetcher.stop()
        attempts.gatekeeper.stop()
        parts.timekeeping.stop()
        parts.phase.closing()
        emitter.emit(WorkerClosing(self.name, self.running, settings.stop_timeout.total_seconds()))
        await Closing(executor, settings, lambda: parts.state.is_hurried).run()
        deadline = max(stop_at, self._loop.time() + settings.grace.total_seconds() + _SHORTEST_RECORDING_SECONDS)
        await record_all(self.name, parts, deadline)
        await drain_reports((attempts.reports, parts.freed_keys), deadline)
        await parts.membership.stop_entering()
        for task in reversed(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await end_loops(self.name, parts.loops, emitter, stop_at)
        if parts.statistics is not None:
            await write_statistics(parts.statistics, deadline)
        await return_loans(attempts.loan_keeper, deadline)
        await executor.close()
        await parts.phase.close()
        parts.watchdog.heartbeat = None
        await parts.membership.stop_beating()
        await self._retire(deadline)
        emitter.emit(WorkerClosed(self.name, executor.finished, executor.released - given_back))

    async def _retire(self, deadline: float) -> None:
        """Unregister the worker, and give back leases that it does not know of."""
        parts, store, worker_id = self._parts, self._parts.around.store, self._parts.membership.worker_id
        if worker_id is None:
            return
        with suppress(StoreError):
            await store.retire(worker_id)
            # Unrecorded ends are left to the rescuer.
            if parts.fetcher.is_in_doubt and not parts.attempts.acknowledger.backlog:
                await give_back_unknown(store, worker_id, deadline, parts.around.settings.audit)
            await store.recall_loans()  # loans whose answer was lost

    def _background(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.append(task)
        return task
