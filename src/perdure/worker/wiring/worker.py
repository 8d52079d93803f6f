"""Builds a worker: every part is made here, and given what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.clock import Clock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.transition import Transition
from perdure.domain.schedule import Schedule
from perdure.events import Emitter, WorkerRecycled
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.kinds.kind import Registry
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.loops.loop import Loop
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest
from perdure.upkeep.bulk_runner import BulkRunner
from perdure.upkeep.gate_sweeper import GateSweeper
from perdure.upkeep.promoter import Promoter
from perdure.upkeep.pruner import Pruner
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings
from perdure.upkeep.statistics_keeper import StatisticsKeeper
from perdure.worker.attempt.running import Stop
from perdure.worker.claiming.ageing import Ageing
from perdure.worker.claiming.fetcher import Fetcher, FetchOwner
from perdure.worker.claiming.lost_claims import Lease, LostClaims
from perdure.worker.claiming.slots import Slots
from perdure.worker.claiming.slow_start import Opener, Pace, SlowStart, openings
from perdure.worker.completion import Completion
from perdure.worker.gates.loan_audit import LoanAudit
from perdure.worker.gates.pauses import Pauser
from perdure.worker.parts import AttemptParts, WorkerParts
from perdure.worker.periodic import Periodic
from perdure.worker.presence.heartbeat import Heartbeat
from perdure.worker.presence.membership import Membership, MembershipOwner
from perdure.worker.presence.phase import BY_OPERATOR, WorkerPhase
from perdure.worker.presence.recycler import Recycler
from perdure.worker.presence.requests import OperatorRequests
from perdure.worker.presence.snapshot import WorkerSnapshots
from perdure.worker.recording.freed_keys import FreedKeys
from perdure.worker.recording.statistics import AttemptCounts, StatisticsWriter
from perdure.worker.run_state import RunState
from perdure.worker.settings import WorkerSettings, serving
from perdure.worker.surroundings import Surroundings
from perdure.worker.timekeeping import Timekeeping
from perdure.worker.wiring.alerts import alert_watch_for
from perdure.worker.wiring.attempts import Owner, wire_attempts
from perdure.worker.wiring.process import new_worker, watchdog_for
from perdure.worker.worker import Worker


def build_worker(
    *,
    store: Store,
    kinds: Registry,
    settings: WorkerSettings,
    emitter: Emitter,
    clock: Clock,
    schedules: Sequence[Schedule] = (),
    periodic: Sequence[Periodic] = (),
    hooks: Hooks = NO_HOOKS,
    records: Sequence[KindRecord] = (),
    alerts: DeclaredAlerts | None = None,
) -> Worker:
    """A worker on the running event loop and an open store, not started."""
    around = Surroundings(
        store=store, kinds=kinds, settings=serving(settings, kinds), emitter=emitter, clock=clock, hooks=hooks
    )
    parts = _Joint(around).join(schedules=schedules, periodic=periodic, alerts=alerts or DeclaredAlerts())
    return Worker(parts, lifespans=hooks.lifespans, records=records)


class _Joint:
    """Joins the parts of one worker: the calls between them.

    Parts refer to each other, so a method looks its part up when it is called. They are made in this order: what
    attempts need, the attempt parts, the fetcher, then the loops and the parts that watch all others.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._me = new_worker(around.settings)
        self._state = RunState()
        self._counts = AttemptCounts(around.clock) if around.settings.statistics else None
        self._slow_start = SlowStart(around.settings, around.clock)
        self._promoter = Promoter(around.store, around.emitter, self._wake)
        self._membership = Membership(
            around,
            self._me,
            MembershipOwner(
                on_id=self._take_id,
                on_lost=self._stop_lost,
                on_back=self._wake,
                running=lambda: len(self._attempts.executor.running),
                is_quieted=lambda: self._phase.is_quiet(BY_OPERATOR),
                is_stopping=self._state.stop.is_set,
            ),
        )
        self._attempts = self._join_attempts()
        self._fetcher = self._join_fetcher()
        self._phase = WorkerPhase(
            self._me.name,
            around.store,
            around.emitter,
            lambda: len(self._attempts.executor.running),
            self._fetcher.wake,
        )
        self._requests = OperatorRequests(around.store, around.emitter, self._cancel, self._heed_operator)
        self._freed_keys = FreedKeys(around.store, around.emitter, self._promoter.wake, self._fetcher.wake)
        self._lost_claims = LostClaims(
            self._me.name, around, self._fetcher, known=self._known, on_back=self._fetcher.wake
        )

    def join(
        self, *, schedules: Sequence[Schedule], periodic: Sequence[Periodic], alerts: DeclaredAlerts
    ) -> WorkerParts:
        """Make and join all parts."""
        around, attempts = self._around, self._attempts
        timekeeping = Timekeeping(
            self._me.name, around, schedules=schedules, periodic=periodic, on_ready=self._fetcher.wake
        )
        every = [*self._loops(), *timekeeping.loops, alert_watch_for(around, self._me.name, alerts)]
        statistics = self._join_statistics()
        if statistics is not None:
            every += [statistics, StatisticsKeeper(around.store, around.emitter, around.settings.keep)]
        if around.settings.recycles:
            every.append(Recycler(around.emitter, around.settings, lambda: attempts.executor.ended, self._recycle))
        loops = Loops(every, outage=around.settings.outage)
        snapshots = WorkerSnapshots(
            self._me, self._phase, attempts.executor, attempts.acknowledger, every, around.clock
        )
        calls = self._fetcher.call, attempts.acknowledger.call
        self._watchdog = watchdog_for(around, calls, snapshots.occupied)
        completion = Completion(
            self._me.name,
            around.emitter,
            executor=attempts.executor,
            loops=loops,
            acknowledger=attempts.acknowledger,
            is_closed=lambda: self._state.is_over,
        )
        return WorkerParts(
            around=around,
            me=self._me,
            state=self._state,
            attempts=attempts,
            fetcher=self._fetcher,
            slow_start=self._slow_start,
            freed_keys=self._freed_keys,
            membership=self._membership,
            phase=self._phase,
            requests=self._requests,
            lost_claims=self._lost_claims,
            timekeeping=timekeeping,
            counts=self._counts,
            statistics=statistics,
            loops=loops,
            snapshots=snapshots,
            watchdog=self._watchdog,
            completion=completion,
        )

    def _join_attempts(self) -> AttemptParts:
        settings = self._around.settings
        return wire_attempts(
            self._around,
            Slots(settings.queues, settings.concurrency, settings.claim_batch, self._slow_start),
            Owner(
                on_free=self._freed,
                on_held=self._promoter.wake,
                on_room=self._freed,
                on_recorded=self._recorded,
                on_ended=self._around.store.ring_ended,
                wake=self._wake,
                is_surely_alive=self._membership.is_surely_alive,
                is_ending=lambda: self._attempts.stages.is_closing or self._state.is_cancelled,
            ),
            counts=self._counts,
        )

    def _join_fetcher(self) -> Fetcher:
        around, attempts = self._around, self._attempts
        settings = around.settings
        return Fetcher(
            store=around.store,
            slots=attempts.slots,
            emitter=around.emitter,
            owner=FetchOwner(
                start=attempts.stages.start,
                give_back=attempts.stages.give_back,
                has_room=self._has_room,
                poll=Pace(settings, self._slow_start, lambda: attempts.executor.ended),
            ),
            ageing=Ageing(around.store, settings.ageing) if settings.ageing else None,
            outage=settings.outage,
        )

    def _loops(self) -> list[Loop[Any]]:
        around, attempts = self._around, self._attempts
        store, emitter, settings = around.store, around.emitter, around.settings
        sweeper = GateSweeper(store, emitter)
        return [
            self._promoter,
            Rescuer(
                store,
                emitter,
                around.clock,
                RescueSettings(
                    lease=settings.lease, sweep=settings.sweep, openings=openings(settings), audit=settings.audit
                ),
                RescueOwner(
                    on_ready=self._fetcher.wake,
                    on_returning=self._promoter.wake,
                    on_crashed=None if self._counts is None else self._counts.sent_back,
                ),
            ),
            Opener(self._me.name, self._slow_start, emitter, self._fetcher.wake, self._phase.opened),
            Pruner(store, emitter, settings.keep),
            BulkRunner(store, emitter, self._me.name),
            sweeper,
            attempts.loan_keeper,
            LoanAudit(
                store,
                emitter,
                attempts.loans,
                settings.heartbeat,
                has_gates=lambda: any(kind.is_gated for kind in around.kinds.values()),
            ),
            Pauser(store, emitter, attempts.pauses, self._heed_pauses, sweeper.wake),
            self._requests,
            self._lost_claims,
        ]

    def _join_statistics(self) -> StatisticsWriter | None:
        around = self._around
        if self._counts is None:
            return None
        return StatisticsWriter(around.store, around.emitter, self._counts, around.settings.statistics)

    def _wake(self) -> None:
        self._fetcher.wake()

    def _freed(self) -> None:
        self._fetcher.freed()

    def _recorded(self, moves: Sequence[Transition]) -> None:
        self._freed_keys.recorded(moves)

    def _has_room(self) -> bool:
        attempts, settings = self._attempts, self._around.settings
        return (
            not self._phase.is_quiet()
            and attempts.pauses.are_known
            and attempts.acknowledger.backlog < settings.unacknowledged
            and attempts.executor.thread_backlog < settings.threads
            and attempts.executor.process_backlog < settings.isolated
        )

    def _known(self) -> set[Lease]:
        """Every claim that the worker holds: in quarantine, at a gate, running, or to be recorded."""
        attempts = self._attempts
        running = [each.claim for each in attempts.executor.running if not each.given_up]
        claims = (*attempts.quarantine.claims, *running, *attempts.acknowledger.claims)
        return {*attempts.gatekeeper.claims, *((claim.job_id, claim.token) for claim in claims)}

    def _take_id(self, worker_id: WorkerId | None, heartbeat: Heartbeat | None) -> None:
        for actor in (self._fetcher, self._requests, self._lost_claims):
            actor.worker_id = worker_id
        self._watchdog.heartbeat = heartbeat
        self._phase.entered(worker_id)
        self._attempts.loans.belong_to(worker_id)

    def _stop_lost(self) -> None:
        """Stop everything held under the old id."""
        executor = self._attempts.executor
        for running in list(executor.running):
            executor.stop(running, Stop.LOST)

    def _cancel(self, request: CancelRequest) -> None:
        executor = self._attempts.executor
        running = executor.find(request.job_id, request.token)
        if running is not None:
            executor.stop(running, Stop.CANCELLED, request.why)

    def _heed_operator(self, wants_quiet: bool) -> None:
        if wants_quiet:
            self._phase.quiet(BY_OPERATOR)
        else:
            self._phase.loud(BY_OPERATOR)
        self._phase.show()

    def _heed_pauses(self) -> None:
        self._attempts.slots.paused = self._attempts.pauses.queues
        self._fetcher.wake()

    def _recycle(self, why: str) -> None:
        if not self._state.stop.is_set():
            self._state.is_recycled = True
            self._around.emitter.emit(WorkerRecycled(self._me.name, why))
            self._state.stop.set()
