"""What a worker provides to the contexts of its attempts.

One object serves all attempts, so that an attempt costs little and is part of no reference cycle, which only the
garbage collector would free.
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
    """Opens the journal of an attempt at its first stored call."""

    def __call__(
        self, claim: Claim, flag: StopFlag, *, started: float, triage: Triage | None, blocking: bool
    ) -> Journal:
        """The journal of the attempt under this claim, which `started` by the monotonic clock."""


class OpensLines(Protocol):
    """Opens the log lines of an attempt when it first logs."""

    def __call__(self, claim: Claim, *, started: float, blocking: bool) -> AttemptLines | None:
        """The lines of the attempt under this claim; None: no lines are stored."""


class OpensGates(Protocol):
    """Makes the gates before a step."""

    def __call__(self, claim: Claim, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        """The gates before the step of this key, for the attempt under this claim; invalid gates are refused."""


class Services(Struct, frozen=True, kw_only=True):
    """The services of attempts. None: there is no worker, or it is in another process."""

    effects: EffectStore | None = None
    checkpoints: Checkpoints | None = None
    spending: Spending | None = None
    open_journal: OpensJournals | None = None
    open_lines: OpensLines | None = None
    open_gate: OpensGates | None = None
    hooks: Hooks = NO_HOOKS


NO_SERVICES = Services()
