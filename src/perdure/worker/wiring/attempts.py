"""The one place that joins the parts which carry a claim from its start to its acknowledgement.

A worker and the sandbox of `perdure.testing` both build from here, so that a test runs what a worker runs. What differs
is the owner: a worker claims again when there is room, and a sandbox goes on when an attempt has ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition, released
from perdure.events import Emitter
from perdure.kinds.kind import Registry
from perdure.storage.port import Store
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.claiming.slots import Slots
from perdure.worker.execution.executor import Executor
from perdure.worker.gates.gatekeeper import Gatekeeper
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.loans import Loans
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.pauses import Pauses, PauseStage
from perdure.worker.gates.refusals import Refusals
from perdure.worker.gates.reports import GateReports
from perdure.worker.recording.acknowledger import Acknowledger
from perdure.worker.settings import WorkerSettings
from perdure.worker.stages import GATES, PAUSES, QUARANTINE, RUN, ClaimStages, Stage


def _nothing() -> None:
    """Do nothing."""


class Surroundings(Struct, frozen=True, kw_only=True, eq=False):
    """What every part works with."""

    store: Store
    kinds: Registry
    settings: WorkerSettings
    emitter: Emitter
    clock: Clock


class Owner(Struct, frozen=True, kw_only=True, eq=False):
    """What the parts tell their owner, and ask it."""

    on_free: Callable[[], None]  # an attempt has ended, or a claim was sent back: its slot is free
    on_start: Callable[[Sequence[Claim]], None] = lambda _claims: None  # these claims have passed every stage
    on_held: Callable[[], None] = _nothing  # claims were parked for a moment
    on_room: Callable[[], None] = _nothing  # transitions were written: more may be recorded
    on_recorded: Callable[[Sequence[Transition]], None] = lambda _moves: None
    on_ended: Callable[[Iterable[JobId]], None] = lambda _job_ids: None  # these jobs are final
    wake: Callable[[], None] = _nothing  # there may be work
    is_heard: Callable[[], bool] = lambda: False  # False: nothing is borrowed, and every job asks its gates
    is_ending: Callable[[], bool] = lambda: False


class AttemptParts(Struct, frozen=True, kw_only=True, eq=False):
    """The parts, joined."""

    slots: Slots
    pauses: Pauses
    refusals: Refusals
    loans: Loans
    loan_keeper: LoanKeeper
    reports: GateReports
    acknowledger: Acknowledger
    executor: Executor
    gatekeeper: Gatekeeper
    quarantine: Quarantine
    stages: ClaimStages


def wire_attempts(
    around: Surroundings,
    slots: Slots,
    owner: Owner,
    *,
    executor_type: type[Executor] = Executor,
    chance: random.Random | None = None,
) -> AttemptParts:
    """Make the parts, for an owner on the running event loop. `chance` decides about jitter: for tests."""
    store, settings, emitter = around.store, around.settings, around.emitter
    pauses = Pauses()
    near = NearLimits(emitter, around.clock)
    loans = Loans(around.clock, owner.is_heard)
    loan_keeper = LoanKeeper(store, emitter, loans, owner.wake)
    reports = GateReports(store, emitter, loan_keeper)

    def recorded(moves: Sequence[Transition]) -> None:
        reports.recorded(moves)
        owner.on_recorded(moves)

    acknowledger = Acknowledger(
        store=store,
        emitter=emitter,
        batch=settings.ack_batch,
        on_room=owner.on_room,
        on_written=recorded,
        on_ended=owner.on_ended,
        audit=settings.audit,
        outage=settings.outage,
    )
    refusals = Refusals(emitter, acknowledger.add)
    stages = ClaimStages(acknowledger.add)
    executor = executor_type(
        kinds=around.kinds,
        slots=slots,
        settings=settings,
        clock=around.clock,
        emitter=emitter,
        store=store,
        acknowledger=acknowledger,
        on_free=owner.on_free,
        on_end=reports.ended,
        near=near,
        is_ending=owner.is_ending,
        reports=reports,
        chance=chance,
    )
    gatekeeper = Gatekeeper(
        store=store,
        kinds=around.kinds,
        slots=slots,
        emitter=emitter,
        refusals=refusals,
        reports=reports,
        near=near,
        keeper=loan_keeper,
        start=stages.after(GATES),
        acknowledge=acknowledger.add,
        on_free=owner.on_free,
        outage=settings.outage,
    )
    quarantine = Quarantine(
        store=store,
        emitter=emitter,
        start=stages.after(QUARANTINE),
        is_running=lambda claim: gatekeeper.is_waiting(claim) or executor.find(claim.job_id, claim.token) is not None,
        on_given_back=owner.on_held,
        outage=settings.outage,
        audit=settings.audit,
    )

    def run(claims: Sequence[Claim]) -> None:
        owner.on_start(claims)
        executor.start(claims)

    def give_back_past_gates(claim: Claim) -> Transition:
        kind = around.kinds.get(claim.kind)
        return released(claim, has_passed=kind is not None and kind.charges_starts)

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
