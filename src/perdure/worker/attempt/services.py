"""What a worker provides to the contexts of its attempts.

One object for all of them, so that an attempt costs little and holds nothing that holds it in turn: what refers to
itself in a circle is freed late, and by a search through everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from perdure.domain.jobs.job import Claim
from perdure.flows.journal import Journal
from perdure.flows.step_gates import StepGate
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import Triage
from perdure.storage.effects import EffectStore
from perdure.worker.attempt.checkpoints import Checkpoints
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.log_lines import AttemptLines
from perdure.worker.attempt.spending import Spending


class OpensJournals(Protocol):
    """Opens the journal of an attempt, once it does something that is kept."""

    def __call__(
        self, claim: Claim, flag: StopFlag, *, started: float, triage: Triage | None, blocking: bool
    ) -> Journal:
        """The journal of the attempt under this claim, which `started` by the monotonic clock."""


class OpensLines(Protocol):
    """Opens the lines of an attempt, once it logs."""

    def __call__(self, claim: Claim, *, started: float, blocking: bool) -> AttemptLines | None:
        """The lines of the attempt under this claim; None: none are kept."""


class OpensGates(Protocol):
    """Makes ready the gates before a step."""

    def __call__(self, claim: Claim, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        """The gates before the step of this key, of the attempt under this claim; refuses what cannot be meant."""


class Services(Struct, frozen=True, kw_only=True):
    """What attempts can draw on. None: there is no worker, or it is in another process."""

    effects: EffectStore | None = None
    checkpoints: Checkpoints | None = None
    spending: Spending | None = None
    open_journal: OpensJournals | None = None
    open_lines: OpensLines | None = None
    open_gate: OpensGates | None = None
    hooks: Hooks = NO_HOOKS


NO_SERVICES = Services()
