"""One check of the gates: a decision, and the data that it is based on."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.gate import BreakerState, GateChanges, GateRequest, GateState, Held
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.gatekeeping import Lately, gatekeeper


class GateLook:
    """A decision on a batch; of several tries by the store, the last counts. Without a `borrower` nothing is lent."""

    def __init__(
        self, batch: Sequence[GateRequest], borrower: WorkerId | None = None, lately: Lately | None = None
    ) -> None:
        self._decide = gatekeeper(batch, None if borrower is None else lately)
        self.borrower = borrower
        self.state: GateState | None = None
        self.changes = GateChanges()

    def decide(self, state: GateState) -> tuple[list[Held | None], GateChanges]:
        """Answer each request, and return the rows to write."""
        answers, self.changes = self._decide(state)
        self.state = state
        return answers, self.changes

    def is_trial(self, breaker: str, claim: Claim) -> bool:
        """Whether a claim passed as a trial of an outside system."""
        for view in self.changes.breakers:
            if view.name == breaker:
                return view.state is BreakerState.HALF_OPEN and claim.job_id in view.trials
        return False
