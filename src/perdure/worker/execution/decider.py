"""Turns the outcome of an attempt into a transition, by the policy of its job."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Done, Outcome, UnknownKind
from perdure.domain.jobs.transition import Transition
from perdure.policy.decide import Limits, decide, finish
from perdure.worker.attempt.outcomes import without_secrets
from perdure.worker.attempt.running import Running
from perdure.worker.settings import WorkerSettings


class Decider:
    """Calls `decide` with all facts about an attempt."""

    def __init__(self, clock: Clock, settings: WorkerSettings, chance: random.Random) -> None:
        self._clock = clock
        self._limits = Limits(missing_handler=settings.missing_handler, unknown_kind_for=settings.unknown_kind_for)
        self._random = chance

    def now(self, running: Running, ended: float | None = None) -> datetime:
        """The time of the database, now or at this time of the monotonic clock."""
        if ended is None:
            ended = self._clock.monotonic()
        return running.claim.claimed_at + timedelta(seconds=ended - running.started)

    def decide(self, running: Running, outcome: Outcome, ended: float | None = None) -> Transition:
        """Where the job goes after this outcome of an attempt, which ended at this time of the monotonic clock: now."""
        kind, journal = running.kind, None if running.context is None else running.context.opened
        has_children = running.spawned or (journal is not None and journal.spawned)
        if isinstance(outcome, Done) and not (has_children or outcome.warnings):  # the fast path: no policy, no texts
            return finish(running.claim, outcome)
        move = decide(
            running.claim,
            outcome,
            running.retry,
            self.now(running, ended),
            self._random,
            self._limits,
            has_children=has_children,
            start_counts=bool(kind.gates) and kind.charges_starts,
        )
        has_texts = move.failure is not None or move.note is not None or move.warnings
        return without_secrets(move, journal) if has_texts else move

    def decide_unknown(self, claim: Claim) -> Transition:
        """Where a job goes whose kind is not known here."""
        return decide(claim, UnknownKind(), None, claim.claimed_at, self._random, self._limits)
