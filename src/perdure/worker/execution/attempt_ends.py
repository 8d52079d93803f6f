"""The last two stages of an attempt: decide what its outcome means, and record it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Done, Outcome, Parked, Released
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.events import Emitter, JobDied, JobFailed, JobRetrying, JobSucceeded, UnknownKindSeen, said_of
from perdure.policy.decide import finish, put_off
from perdure.worker.attempt.outcomes import NOTHING
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.execution.decider import Decider
from perdure.worker.recording.acknowledger import Acknowledger
from perdure.worker.recording.statistics import AttemptCounts
from perdure.worker.surroundings import Surroundings

OnEnd = Callable[[Claim, Outcome | None], None]

_LOST: Final = Stop.LOST  # members of an enum are slow to look up, and each attempt needs this one


class AttemptEnds:
    """Hands transitions to the acknowledger, and emits how attempts ended.

    `on_end` is called with each outcome; with None if the store has it already or no longer accepts it. Without
    `counts` there are no statistics.
    """

    def __init__(
        self,
        around: Surroundings,
        decider: Decider,
        acknowledger: Acknowledger,
        *,
        on_end: OnEnd,
        counts: AttemptCounts | None = None,
    ) -> None:
        self._clock: Clock = around.clock
        self._emitter: Emitter = around.emitter
        self._hooks = around.hooks
        self._decider = decider
        self._acknowledger = acknowledger
        self._on_end = on_end
        self._counts = counts
        self.finished = 0
        self.released = 0

    def record(self, running: Running, outcome: Outcome | None) -> None:
        """Decide and record; None: the attempt has lost its claim, and nothing is recorded."""
        if running.context is not None and running.context.effects is not None:
            self._note_written(running)
        if isinstance(outcome, Parked) and running.stop not in (None, Stop.CLOSING):
            outcome = running.outcome_when_stopped()  # it was told to stop, and would have waited
        if outcome is None or (running.stop is _LOST and not isinstance(outcome, Done)):
            self._on_end(running.claim, None)  # how it failed does not matter: it had lost its claim
            self._trace_end(running, None)
            return
        ended = self._clock.monotonic()
        transition = self._decider.decide(running, outcome, ended)
        if isinstance(outcome, Released):
            self.released += 1
        else:
            self.finished += 1
        self._acknowledger.add(transition, running.started, ended)
        self._on_end(running.claim, outcome)
        if self._emitter.follows_attempts or transition.failure is not None:
            self._emit_end(running, transition)
        if running.mark is not None:
            self._trace_end(running, transition)

    def record_unknown(self, claim: Claim) -> None:
        """Record a claim of a kind that is not known here."""
        self._emitter.emit(UnknownKindSeen(claim.job_id, claim.kind))
        move = self._decider.decide_unknown(claim)
        self._acknowledger.add(move)
        if self._counts is not None:
            self._counts.sent_back(move)
        if move.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(move))

    def record_not_started(self, running: Running, wait: timedelta, why: str) -> None:
        """Put off an attempt that could not be started, at no cost."""
        move = put_off(running.claim, wait, why, has_passed=running.kind.charges_starts)
        self._acknowledger.add(move)
        self._trace_end(running, move)

    def _note_written(self, running: Running) -> None:
        """Count a success that was recorded together with the handler's writes."""
        effects = None if running.context is None else running.context.effects
        answer = None if effects is None else effects.answer
        if answer is None:
            return
        self.finished += 1
        self._acknowledger.note(answer, running.claim.job_id)
        self._on_end(running.claim, NOTHING)
        if answer.stale:
            return
        if self._counts is not None:
            self._counts.succeeded(running.claim, running.started, self._clock.monotonic())
        if self._emitter.follows_attempts:
            self._follow_success(running)
        self._trace_end(running, finish(running.claim, NOTHING))

    def _emit_end(self, running: Running, move: Transition) -> None:
        """Emit the events of the end. What listeners log about an attempt that is traced belongs to it."""
        tracer = None if running.mark is None else self._hooks.tracer
        token = None if tracer is None else tracer.enter(running.mark)
        if self._emitter.follows_attempts:
            self._follow(running, move)
        if move.failure is not None:
            self._emit_failure(running, move)
        if tracer is not None:
            tracer.leave(token)

    def _trace_end(self, running: Running, move: Transition | None) -> None:
        mark, running.mark = running.mark, None
        if mark is not None and self._hooks.tracer is not None:
            self._hooks.tracer.ended(mark, move)

    def _follow(self, running: Running, move: Transition) -> None:
        """Emit how an attempt has ended, for subscribers to single attempts."""
        exception, running.exception = running.exception, None  # else the two would form a reference cycle
        if move.to is JobState.SUCCEEDED:
            self._follow_success(running)
        elif move.failure is not None:
            claim = running.claim
            self._emitter.emit(
                JobFailed(
                    job_id=claim.job_id,
                    kind=claim.kind,
                    queue=claim.queue,
                    attempt=claim.attempt,
                    seconds=self._seconds(running),
                    will_retry=move.to is not JobState.DEAD,
                    error=str(move.failure),
                    exception=exception,
                    **said_of(claim),
                )
            )

    def _follow_success(self, running: Running) -> None:
        claim = running.claim
        self._emitter.emit(
            JobSucceeded(
                job_id=claim.job_id,
                kind=claim.kind,
                queue=claim.queue,
                attempt=claim.attempt,
                seconds=self._seconds(running),
                **said_of(claim),
            )
        )

    def _emit_failure(self, running: Running, move: Transition) -> None:
        if move.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(move))
            return
        claim, failure = move.claim, move.failure
        wait = move.wait.total_seconds() if move.wait else 0.0
        self._emitter.emit(
            JobRetrying(
                job_id=claim.job_id,
                kind=claim.kind,
                attempt=claim.attempt,
                failures=move.failures,
                max_attempts=move.limit or None,
                wait=wait,
                error=str(failure),
                traceback=None if failure is None else failure.traceback,
                next_at=self._decider.now(running) + timedelta(seconds=wait),
                **said_of(claim),
            )
        )

    def _seconds(self, running: Running) -> float:
        return round(self._clock.monotonic() - running.started, 6)
