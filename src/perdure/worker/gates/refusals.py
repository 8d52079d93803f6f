"""Claims that a pause or a gate holds back: each goes back with what holds it, and is counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Gated, Outcome
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.events import Emitter, JobDied
from perdure.policy.decide import decide


class Refusals:
    """Sends claims back before they start."""

    def __init__(self, emitter: Emitter, acknowledge: Callable[[Transition], None]) -> None:
        self._emitter = emitter
        self._acknowledge = acknowledge
        self._random = random.Random()  # noqa: S311 - hides nothing
        self.held: Counter[str] = Counter()
        """How many claims were held back so far, by reason."""

    def send_back(self, claim: Claim, outcome: Outcome) -> None:
        """Record this outcome of a claim that was not started."""
        move = decide(claim, outcome, None, claim.claimed_at, self._random)
        self._acknowledge(move)
        if isinstance(outcome, Gated):
            self.held[outcome.reason] += 1
        if move.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(move))
