"""Joins the parts that carry a claim from its start to its acknowledgement.

A worker and the sandbox of `perdure.testing` both build from here, so that a test runs what a worker runs. Only the
owner differs: a worker claims again when a slot is free, and a sandbox continues when an attempt has ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.policy.decide import give_back
from perdure.worker.attempt.stored_services import StoredServices
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.claiming.slots import Slots
from perdure.worker.execution.attempt_ends import AttemptEnds
from perdure.worker.execution.closing_writes import ClosingWrites
from perdure.worker.execution.decider import Decider
from perdure.worker.execution.executor import Executor
from perdure.worker.execution.handler_runs import HandlerRuns
from perdure.worker.execution.threads import MakeThreads, ThreadCrew
from perdure.worker.gates.gatekeeper import GateBooks, Gatekeeper
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.loans import Loans
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.pauses import Pauses, PauseStage
from perdure.worker.gates.refusals import Refusals
from perdure.worker.gates.reports import GateReports
from perdure.worker.isolation.pool import ProcessCrew
from perdure.worker.isolation.relay import Relay
from perdure.worker.parts import AttemptParts
from perdure.worker.recording.acknowledger import Acknowledger, RecordOwner
from perdure.worker.recording.statistics import AttemptCounts
from perdure.worker.stages import GATES, PAUSES, QUARANTINE, RUN, ClaimStages, Stage
from perdure.worker.surroundings import Surroundings


def _uncounted(_move: Transition) -> None:
    """Count nothing: no statistics are stored."""


def _nothing() -> None:
    """Do nothing."""


class Owner(Struct, frozen=True, kw_only=True, eq=False):
    """What the parts report to their owner, and ask of it."""

    on_free: Callable[[], None]  # an attempt has ended, or a claim was sent back: its slot is free
    on_start: Callable[[Sequence[Claim]], None] = lambda _claims: None  # these claims have passed every stage
    on_held: Callable[[], None] = _nothing  # claims were parked for a moment
    on_room: Callable[[], None] = _nothing  # transitions were written: more may be recorded
    on_recorded: Callable[[Sequence[Transition]], None] = lambda _moves: None
    on_ended: Callable[[Iterable[JobId]], None] = lambda _job_ids: None  # these jobs are final
    wake: Callable[[], None] = _nothing  # there may be work
    is_surely_alive: Callable[[], bool] = lambda: False  # False: no loans; every job asks its gates
    is_ending: Callable[[], bool] = lambda: False


def wire_attempts(
    around: Surroundings,
    slots: Slots,
    owner: Owner,
    *,
    make_threads: MakeThreads = ThreadCrew,
    short_wait: timedelta | None = None,
    chance: random.Random | None = None,
    counts: AttemptCounts | None = None,
) -> AttemptParts:
    """Make the parts, for an owner on the running event loop.

    Tests replace the threads of sync handlers, the source of jitter (`chance`), and the longest wait for which a
    handler is not parked (`short_wait`). Without `counts` no statistics are stored.
    """
    settings, emitter = around.settings, around.emitter
    chance = chance or random.Random()  # noqa: S311 - jitter hides nothing
    near = NearLimits(emitter, around.clock)
    loans = Loans(around.clock, owner.is_surely_alive)
    loan_keeper = LoanKeeper(around.store, emitter, loans, owner.wake)
    reports = GateReports(around.store, emitter, loan_keeper)

    def written(moves: Sequence[Transition]) -> None:
        reports.recorded(moves)
        owner.on_recorded(moves)

    acknowledger = Acknowledger(
        around.store,
        emitter,
        settings,
        RecordOwner(
            on_room=owner.on_room,
            on_written=written,
            on_ended=owner.on_ended,
            on_stored=around.hooks.stored,
            counts=counts,
        ),
    )

    def stop_lost(claim: Claim) -> None:
        executor.stop_lost(claim)

    services = StoredServices(around, near=near, reports=reports, on_lost=stop_lost, chance=chance)
    if short_wait is not None:
        services.recorder.short_wait = short_wait
    decider = Decider(around.clock, settings, chance)
    ends = AttemptEnds(around, decider, acknowledger, on_end=reports.ended, counts=counts)
    executor = Executor(
        around,
        slots,
        runs=_wire_runs(around, services, decider, owner.is_ending),
        ends=ends,
        on_free=owner.on_free,
        make_threads=make_threads,
    )
    refusals = Refusals(emitter, acknowledger.add, _uncounted if counts is None else counts.sent_back)
    stages = ClaimStages(acknowledger.add)
    gatekeeper = Gatekeeper(
        around,
        slots,
        GateBooks(refusals=refusals, reports=reports, near=near, loans=loans),
        start=stages.after(GATES),
        on_free=owner.on_free,
    )
    quarantine = Quarantine(
        around.store,
        emitter,
        settings,
        start=stages.after(QUARANTINE),
        is_running=lambda claim: gatekeeper.is_waiting(claim) or executor.find(claim.job_id, claim.token) is not None,
        on_given_back=owner.on_held,
    )
    pauses = Pauses()

    def run(claims: Sequence[Claim]) -> None:
        owner.on_start(claims)
        executor.start(claims)

    def give_back_past_gates(claim: Claim) -> Transition:
        kind = around.kinds.get(claim.kind)
        return give_back(claim, has_passed=kind is not None and kind.charges_starts)

    stages.define(
        Stage(QUARANTINE, quarantine.start),
        Stage(PAUSES, PauseStage(pauses, refusals, stages.after(PAUSES)).start),
        Stage(GATES, gatekeeper.start),
        Stage(RUN, run, give_back_past_gates),
    )
    return AttemptParts(
        slots=slots,
        pauses=pauses,
        refusals=refusals,
        loans=loans,
        loan_keeper=loan_keeper,
        reports=reports,
        acknowledger=acknowledger,
        executor=executor,
        gatekeeper=gatekeeper,
        quarantine=quarantine,
        stages=stages,
    )


def _wire_runs(
    around: Surroundings, services: StoredServices, decider: Decider, is_ending: Callable[[], bool]
) -> HandlerRuns:
    settings = around.settings
    processes = ProcessCrew(
        size=settings.isolated,
        grace=settings.grace.total_seconds(),
        checkpoints=services.checkpoints,
        spending=services.spending,
        relay=Relay(services.recorder, services.step_gates, settings.keep_lines),
    )
    return HandlerRuns(
        services=services,
        writes=ClosingWrites(services.recorder, decider, settings),
        processes=processes,
        clock=around.clock,
        hooks=around.hooks,
        is_ending=is_ending,
    )
