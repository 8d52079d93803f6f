"""Sends back claims that a pause or a gate holds, each with the reason, and counts them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Gated, Outcome
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.events import Emitter, JobDied
from perdure.policy.decide import decide, give_back, put_off


class Refusals:
    """Sends claims back before they start."""

    def __init__(
        self,
        emitter: Emitter,
        acknowledge: Callable[[Transition], None],
        on_sent_back: Callable[[Transition], None] = lambda _move: None,
    ) -> None:
        self._emitter = emitter
        self._acknowledge = acknowledge
        self._on_sent_back = on_sent_back
        self._random = random.Random()  # noqa: S311 - hides nothing
        self.held: Counter[str] = Counter()
        """The number of claims held back so far, by reason."""

    def give_back(self, claims: Iterable[Claim]) -> None:
        """Return claims to their queue: their gates were not checked, or the reply did not arrive."""
        for claim in claims:
            self._acknowledge(give_back(claim))

    def put_off(self, claim: Claim, wait: timedelta, why: str) -> None:
        """Delay a claim for a while, because its gates could not be checked."""
        self._acknowledge(put_off(claim, wait, why))

    def send_back(self, claim: Claim, outcome: Outcome) -> None:
        """Record this outcome of a claim that was not started."""
        move = decide(claim, outcome, None, claim.claimed_at, self._random)
        self._acknowledge(move)
        self._on_sent_back(move)
        if isinstance(outcome, Gated):
            self.held[outcome.reason] += 1
        if move.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(move))
