"""A worker, from opening to closing: it joins the actors of this folder and owns none of their work.

Opening: register, beat, start the upkeep, listen for wake-ups, claim. Closing is the reverse: claim nothing more, bring
what runs to its end (`closing` says how and when), record everything, stop listening and the upkeep, retire.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from types import FrameType
from typing import Any, Final

from perdure.clock import Clock
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.transition import Transition
from perdure.domain.schedule import Schedule
from perdure.domain.worker import NewWorker
from perdure.errors import ConflictError, StillRunning, StoreError
from perdure.events import (
    Emitter,
    LifespanFailed,
    WorkerClosed,
    WorkerClosing,
    WorkerLost,
    WorkerOpened,
    WorkerRecycled,
)
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.kinds.kind import Registry
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.loops.unless_stopped import done_unless_stopped
from perdure.lifecycle.outage import Outage
from perdure.lifecycle.process.identity import this_process
from perdure.lifecycle.process.stacks import Snapshot
from perdure.lifecycle.process.watchdog import Watchdog
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest
from perdure.upkeep.gate_sweeper import GateSweeper
from perdure.upkeep.promoter import Promoter
from perdure.upkeep.pruner import Pruner
from perdure.upkeep.rescuer import Rescuer
from perdure.version import __version__
from perdure.worker.attempt.running import Stop
from perdure.worker.claiming.ageing import Ageing
from perdure.worker.claiming.fetcher import Fetcher
from perdure.worker.claiming.listener import WakeupListener
from perdure.worker.claiming.lost_claims import Lease, Strays
from perdure.worker.claiming.slots import Slots
from perdure.worker.claiming.slow_start import Opener, Pace, SlowStart, openings
from perdure.worker.closing import Closing, end_loops, give_back_unknown, record_all, return_loans, settle_reports
from perdure.worker.completion import COMPLETION_TIMEOUT, Completion
from perdure.worker.gates.loan_audit import LoanAudit
from perdure.worker.gates.pauses import Pauser
from perdure.worker.periodic import Periodic
from perdure.worker.presence.duplicate_names import report_duplicate_names
from perdure.worker.presence.heartbeat import Heartbeat
from perdure.worker.presence.phase import BY_OPERATOR, WorkerPhase
from perdure.worker.presence.recycler import Recycler
from perdure.worker.presence.requests import OperatorRequests
from perdure.worker.presence.snapshot import WorkerSnapshots
from perdure.worker.recording.freed_keys import FreedKeys
from perdure.worker.settings import WorkerSettings, serving
from perdure.worker.timekeeping import Timekeeping
from perdure.worker.wiring.attempts import Owner, Surroundings, wire_attempts

_SHORTEST_LIMIT: Final = 1.0
_SURE: Final = 0.8  # of the lease: so long after a beat the worker is alive for everybody


class Worker:
    """Runs jobs of an open store until it is stopped."""

    def __init__(
        self,
        store: Store,
        kinds: Registry,
        settings: WorkerSettings,
        emitter: Emitter,
        clock: Clock,
        *,
        schedules: Sequence[Schedule] = (),
        periodic: Sequence[Periodic] = (),
        hooks: Hooks = NO_HOOKS,
        records: Sequence[KindRecord] = (),
    ) -> None:
        settings = serving(settings, kinds)
        self._store = store
        self._kinds = kinds
        self._records = records
        self._settings = settings
        self._lifespans = hooks.lifespans
        self._emitter = emitter
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        process = this_process()
        self.name = settings.name or f"{socket.gethostname()}:{process.pid}"
        self._self = NewWorker(
            name=self.name,
            process=process,
            queues=tuple(queue.name for queue in settings.queues),
            concurrency=settings.concurrency,
            version=__version__,
        )
        self._slow_start = SlowStart(settings, clock)
        self._slots = Slots(settings.queues, settings.concurrency, settings.claim_batch, self._slow_start)
        self._clock = clock
        promoter = Promoter(store, emitter, self.wake)
        parts = wire_attempts(
            Surroundings(store=store, kinds=kinds, settings=settings, emitter=emitter, clock=clock),
            self._slots,
            Owner(
                on_free=self._freed,
                on_held=promoter.wake,
                on_room=self._freed,
                on_recorded=self._recorded,
                on_ended=store.ring_ended,
                wake=self.wake,
                is_heard=self._is_heard,
                is_ending=self._is_ending,
            ),
        )
        self._pauses, self._loans, self._loan_keeper = parts.pauses, parts.loans, parts.loan_keeper
        self._reports, self._acknowledger = parts.reports, parts.acknowledger
        self._executor, self._gatekeeper, self._refusals = parts.executor, parts.gatekeeper, parts.refusals
        self._quarantine, self._stages = parts.quarantine, parts.stages
        self._fetcher = Fetcher(
            store=store,
            slots=self._slots,
            emitter=emitter,
            poll=Pace(settings, self._slow_start, lambda: self._executor.ended),
            start=self._stages.start,
            give_back=self._stages.give_back,
            has_room=self._has_room,
            ageing=Ageing(store, settings.ageing) if settings.ageing else None,
            outage=settings.outage,
        )
        self._phase = WorkerPhase(self.name, store, emitter, lambda: self.running, self._fetcher.wake)
        self._requests = OperatorRequests(store, emitter, self._cancel, self._heed_operator)
        self._freed_keys = FreedKeys(store, emitter, promoter.wake, self._fetcher.wake)
        self._timekeeping = Timekeeping(
            worker=self.name,
            schedules=schedules,
            periodic=periodic,
            store=store,
            emitter=emitter,
            clock=clock,
            on_ready=self._fetcher.wake,
            backup=settings.backup,
        )
        sweeper = GateSweeper(store, emitter)
        self._strays = Strays(
            worker=self.name,
            store=store,
            emitter=emitter,
            fetcher=self._fetcher,
            interval=settings.heartbeat,
            known=self._known,
            on_back=self._fetcher.wake,
            audit=settings.audit,
        )
        loops: list[Loop[Any]] = [
            promoter,
            Rescuer(
                store=store,
                emitter=emitter,
                clock=clock,
                lease=settings.lease,
                sweep=settings.sweep,
                on_ready=self._fetcher.wake,
                on_returning=promoter.wake,
                openings=openings(settings),
                audit=settings.audit,
            ),
            Opener(self.name, self._slow_start, emitter, self._fetcher.wake, self._in_full),
            Pruner(store, emitter, settings.keep),
            sweeper,
            self._loan_keeper,
            LoanAudit(
                store,
                emitter,
                self._loans,
                settings.heartbeat,
                has_gates=lambda: any(kind.is_gated for kind in kinds.values()),
            ),
            Pauser(store, emitter, self._pauses, self._heed_pauses, sweeper.wake),
            self._requests,
            self._strays,
            *self._timekeeping.loops,
        ]
        if settings.recycles:
            loops.append(Recycler(emitter, settings, lambda: self._executor.ended, self._recycle))
        self._loops = Loops(loops, outage=settings.outage)
        self._snapshots = WorkerSnapshots(self._self, self._phase, self._executor, self._acknowledger, loops, clock)
        self._watchdog = Watchdog(
            self._loop,
            emitter,
            clock,
            blocked_after=settings.blocked_after,
            slow_store_after=settings.slow_store_after,
            beat_within=min(2 * settings.heartbeat, settings.lease - settings.heartbeat / 2),
            calls=(self._fetcher.call, self._acknowledger.call),
            occupied=self._snapshots.occupied,
        )
        self._completion = Completion(
            self.name,
            emitter,
            executor=self._executor,
            loops=self._loops,
            acknowledger=self._acknowledger,
            is_closed=lambda: self._task is None or self._ended.is_set(),
        )
        self._task: asyncio.Task[Any] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._heartbeat: Heartbeat | None = None
        self._worker_id: WorkerId | None = None
        self.opened = asyncio.Event()
        self._ended = asyncio.Event()
        self.recycled = False
        self._hurried = False

    @property
    def running(self) -> int:
        """How many attempts are under way."""
        return len(self._executor.running)

    @property
    def finished(self) -> int:
        """How many attempts have ended here; those whose jobs were released to their queue do not count."""
        return self._executor.finished

    @property
    def acknowledged(self) -> int:
        """How many attempts are recorded in the store."""
        return self._acknowledger.applied

    @property
    def held(self) -> dict[str, int]:
        """How many claims gates, breakers and pauses have held back here, by reason."""
        return dict(self._refusals.held)

    @property
    def stale_writes(self) -> int:
        """How many acknowledgements came too late and changed nothing."""
        return self._acknowledger.stale

    def stop(self) -> None:
        """Begin to close; `run` returns when that is done."""
        self._stop.set()

    def hurry(self) -> None:
        """Close without waiting for handlers to finish: they are asked to stop, and their jobs go back at no cost."""
        self._hurried = True
        self._stop.set()

    def describe(self, innermost: FrameType | None = None) -> Snapshot:
        """Everything that this process does just now; may be asked from any thread, and while the loop is blocked.

        The calling thread is shown from `innermost` outwards.
        """
        return self._snapshots.describe(self._loop, innermost)

    def wake(self) -> None:
        """Look for work now."""
        self._fetcher.wake()

    def quiet(self, because: str) -> None:
        """Claim nothing more, and let run what runs, until this reason is taken back with `loud`."""
        self._phase.quiet(because)

    def loud(self, because: str) -> None:
        """Claim again, unless there is another reason to be quiet."""
        self._phase.loud(because)

    async def started(self) -> None:
        """Wait until the loops are launched and the worker claims; ConflictError if `run` ends before that."""
        signals = [self._loop.create_task(event.wait()) for event in (self.opened, self._ended)]
        try:
            await asyncio.wait(signals, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for signal in signals:
                signal.cancel()
        if not self.opened.is_set():
            raise ConflictError(f"worker {self.name} ended before it had started: see the error of its run()")

    async def wait_for_completion(self, timeout: Duration = COMPLETION_TIMEOUT) -> None:  # noqa: ASYNC109
        """Stop, and wait until the worker has closed and no attempt and no tick of it runs any more.

        Call it before HTTP and the database close. Past the timeout handlers are asked to stop at once, as by `hurry`,
        and StillRunning says what still runs.
        """
        limit = parse_duration("timeout", timeout)
        self.stop()
        try:
            await self._completion.wait(limit)
        except StillRunning:
            self.hurry()
            raise

    async def run(self) -> None:
        """Work until stopped, within the lifespans of the app; a stop while these open is heard at once."""
        self._task = asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                opening = stack.enter_async_context(self._lifespans.opened(self._not_closed))
                if await done_unless_stopped(opening, self._stop):
                    await self._work()
        finally:
            self._ended.set()

    async def _work(self) -> None:
        await self._enter()
        await report_duplicate_names(self._self, self._store, self._emitter)
        await self._timekeeping.declare()
        if self._records:
            await self._store.declare_kinds(self._records)
        self._slow_start.begin()
        self._loops.start()
        self._background(WakeupListener(self._store, self._emitter, self._fetcher.wake, self._settings.outage).run())
        fetching = self._background(self._fetcher.run())
        queues = tuple(queue.name for queue in self._settings.queues)
        self._emitter.emit(WorkerOpened(self.name, self._worker_id or 0, queues, self._settings.concurrency))
        self.opened.set()
        stopping = self._loop.create_task(self._stop.wait())
        self._watchdog.start()
        try:
            await asyncio.wait([stopping, fetching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._close()
            self._watchdog.stop()
        if fetching.done() and not fetching.cancelled() and (error := fetching.exception()):
            raise error

    async def _enter(self) -> None:
        """Register under a new id, and beat for it."""
        heard_at = self._clock.monotonic()
        worker_id = await self._store.register(self._self)
        if self._phase.is_quiet(BY_OPERATOR):  # what was asked of the old id holds for the new one
            await self._store.quiet([worker_id], self.name, quiet=True)
        beat = self._settings.heartbeat.total_seconds()
        limit = max(self._settings.lease.total_seconds() / 6, _SHORTEST_LIMIT)  # so that there is time for another try
        heartbeat = Heartbeat(
            store=self._store.sibling(),
            worker_id=worker_id,
            interval=beat,
            limit=limit,
            emitter=self._emitter,
            on_lost=self._lost,
            clock=self._clock,
            registered_at=heard_at,
        )
        heartbeat.start()
        self._heartbeat = self._watchdog.heartbeat = heartbeat
        self._be(worker_id)
        self._phase.entered(worker_id)
        self._loans.belong_to(worker_id)

    def _not_closed(self, lifespan: str, error: BaseException) -> None:
        self._emitter.emit(LifespanFailed(self.name, lifespan, f"{type(error).__name__}: {error}"))

    def _be(self, worker_id: WorkerId | None) -> None:
        for actor in (self._fetcher, self._requests, self._strays):
            actor.worker_id = worker_id
        self._worker_id = worker_id

    def _is_ending(self) -> bool:
        """Whether this worker closes, or its own task is being cancelled and it will close in a moment."""
        return self._stages.is_closing or (self._task is not None and self._task.cancelling() > 0)

    def _is_heard(self) -> bool:
        """Whether this worker has shown that it lives so lately that nobody can have declared it dead."""
        if self._heartbeat is None:
            return False
        return self._clock.monotonic() - self._heartbeat.heard_at < _SURE * self._settings.lease.total_seconds()

    def _known(self) -> set[Lease]:
        """Every claim that is not given back yet, be it in quarantine, at a gate, running, or to be recorded."""
        running = [each.claim for each in self._executor.running if not each.given_up]
        claims = (*self._quarantine.claims, *running, *self._acknowledger.claims)
        return {*self._gatekeeper.claims, *((claim.job_id, claim.token) for claim in claims)}

    def _has_room(self) -> bool:
        return (
            not self._phase.is_quiet()
            and self._pauses.are_known
            and self._acknowledger.backlog < self._settings.unacknowledged
            and self._executor.thread_backlog < self._settings.threads
            and self._executor.process_backlog < self._settings.isolated
        )

    def _recorded(self, moves: Sequence[Transition]) -> None:
        self._freed_keys.recorded(moves)

    def _in_full(self) -> None:
        """Nothing holds this worker back any more."""
        self._phase.opened()

    def _freed(self) -> None:
        self._fetcher.freed()

    def _cancel(self, request: CancelRequest) -> None:
        running = self._executor.find(request.job_id, request.token)
        if running is not None:
            self._executor.stop(running, Stop.CANCELLED, request.why)

    def _heed_operator(self, wants_quiet: bool) -> None:
        if wants_quiet:
            self._phase.quiet(BY_OPERATOR)
        else:
            self._phase.loud(BY_OPERATOR)
        self._phase.show()

    def _heed_pauses(self) -> None:
        self._slots.paused = self._pauses.queues
        self._fetcher.wake()

    def _recycle(self, why: str) -> None:
        if not self._stop.is_set():
            self.recycled = True
            self._emitter.emit(WorkerRecycled(self.name, why))
            self.stop()

    def _lost(self) -> None:
        """Everything held under the old id is lost: stop it, and begin again under a new one."""
        self._emitter.emit(WorkerLost(self.name, self._worker_id or 0, self.running))
        self._be(None)
        self._phase.entered(None)
        self._loans.belong_to(None)
        self._watchdog.heartbeat = None
        for running in list(self._executor.running):
            self._executor.stop(running, Stop.LOST)
        self._background(self._enter_again())

    async def _enter_again(self) -> None:
        outage = Outage("register", self._emitter, self._settings.outage)
        while not self._stop.is_set():
            try:
                await self._enter()
            except Exception as error:  # noqa: BLE001 - without an id the worker would idle for ever
                await outage.wait_out(error)
            else:
                outage.succeeded()
                self._fetcher.wake()
                return

    async def _close(self) -> None:
        settings = self._settings
        stop_at, given_back = self._loop.time() + settings.stop_timeout.total_seconds(), self._executor.released
        self._stages.is_closing = True
        self._fetcher.stop()
        self._gatekeeper.stop()
        self._timekeeping.stop()
        self._phase.closing()
        self._emitter.emit(WorkerClosing(self.name, self.running, settings.stop_timeout.total_seconds()))
        await Closing(self._executor, settings, lambda: self._hurried).run()
        deadline = max(stop_at, self._loop.time() + settings.grace.total_seconds() + _SHORTEST_LIMIT)
        await record_all(
            name=self.name,
            fetcher=self._fetcher,
            quarantine=self._quarantine,
            gatekeeper=self._gatekeeper,
            acknowledger=self._acknowledger,
            emitter=self._emitter,
            deadline=deadline,
        )
        await settle_reports((self._reports, self._freed_keys), deadline)
        for task in reversed(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await end_loops(self.name, self._loops, self._emitter, stop_at)
        await return_loans(self._loan_keeper, deadline)
        await self._executor.close()
        await self._phase.close()
        self._watchdog.heartbeat = None
        if self._heartbeat is not None:
            await self._heartbeat.stop()
        if self._worker_id is not None:
            with suppress(StoreError):
                await self._store.retire(self._worker_id)
                if self._fetcher.is_in_doubt and not self._acknowledger.backlog:  # whose ends are known will be rescued
                    await give_back_unknown(self._store, self._worker_id, deadline, self._settings.audit)
                await self._store.recall_loans()  # of which it knows nothing
        self._emitter.emit(WorkerClosed(self.name, self._executor.finished, self._executor.released - given_back))

    def _background(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.append(task)
        return task
