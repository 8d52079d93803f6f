"""Gates before a step (E8): the same as before a job, asked for the running claim.

A completed step passes no gate. Each try of another step asks. While a gate is closed the handler is left and its job
parked with the gate's reason; no attempt is used. The job comes back by itself, and keeps its place in the line of a
rate. A breaker learns how each try ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

from msgspec import Struct

from perdure.domain.gate import BreakerReport, BudgetCheck, GateRequest, Held
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Failed, Parked
from perdure.errors import BudgetExceeded, PayloadError, StepError
from perdure.flows.calling import Calling
from perdure.flows.journal import Journal
from perdure.kinds.kind import Kind
from perdure.policy.limits.declared_gates import check_step_gates
from perdure.policy.limits.gate_plan import GatePlan
from perdure.policy.limits.gatekeeping import CLAIM_LOST
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import classify


class Passing(Struct, frozen=True):
    """The answer of the gates; `held` None: the step may be tried, as a trial if the breaker is half open."""

    held: Held | None = None
    is_trial: bool = False


class StepGates(Protocol):
    """The gates of the fleet, for steps. Used on the worker's event loop only (`Journal.reach`)."""

    async def pass_step(self, request: GateRequest) -> Passing:
        """Let a step pass, or say why it is held."""

    async def note_step(self, request: GateRequest, report: BreakerReport) -> None:
        """Report to a request's breaker how a try ended."""


class StepGate:
    """All gates before one step."""

    def __init__(self, key: str, request: GateRequest, gates: StepGates) -> None:
        self._key = key
        self._request = request
        self._gates = gates

    @property
    def budgets(self) -> tuple[BudgetCheck, ...]:
        """The budgets that the step may spend from."""
        return self._request.budgets

    async def try_once(self, journal: Journal, calling: Calling) -> Any:
        """Pass the gates and call the function. If they are closed, park the job, or raise BudgetExceeded."""
        passing = await journal.reach(self._ask(journal))
        if passing.held is not None:
            if passing.held.fails:
                raise BudgetExceeded(passing.held.note)
            note = f"{passing.held.note}; before step {self._key}"
            await journal.park(Parked(passing.held.reason, passing.held.wait, note=note))
        try:
            result = await calling.once(journal)
        except Exception as error:
            outcome = classify(error, journal.triage, now=journal.now)
            if isinstance(outcome, Failed):
                await self._tell(journal, succeeded=False, retry_after=outcome.retry_after)
            raise
        if passing.is_trial:
            await self._tell(journal, succeeded=True)
        return result

    async def _ask(self, journal: Journal) -> Passing:
        passing = await self._gates.pass_step(self._request)
        is_lost = passing.held is not None and passing.held.reason == CLAIM_LOST
        journal.recorder.demand(journal.claim, held=not is_lost)
        return passing

    async def _tell(self, journal: Journal, *, succeeded: bool, retry_after: timedelta | None = None) -> None:
        if (breaker := self._request.breaker) is not None:
            report = BreakerReport(breaker.name, journal.claim.job_id, succeeded, retry_after)
            await journal.reach(self._gates.note_step(self._request, report))


def gate_before(
    gates: StepGates, kind: Kind, claim: Claim, key: str, asked: Sequence[Gate], breaker: Breaker | None
) -> StepGate:
    """The gates before a step of this key. Their keys and estimates follow from the job's arguments."""
    names = kind.signature.names
    check_step_gates(key, asked, breaker, names)
    name = key.partition("#")[0]
    plan = GatePlan(f"{kind.name}/{name}", asked, breaker, names, borrows=False, of_step=True)
    try:
        values = kind.signature.values(claim.args) if plan.needs_arguments else ()
        request = plan.request(claim, values)
    except PayloadError as error:
        raise StepError(key, str(error)) from error
    return StepGate(key, request, gates)
