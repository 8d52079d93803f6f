"""The outcome of a drain."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState


class Drained(Struct, frozen=True, kw_only=True):
    """The jobs that ran, in their current state, in the order of their first attempt.

    A job that failed twice and then succeeded is one job that succeeded. `left` counts the jobs of the drained queues,
    run or not, that are not final: retrying, scheduled, waiting, paused, or ready because the drain ended early.
    """

    jobs: tuple[JobView, ...]
    attempts: int
    left: int

    @property
    def succeeded(self) -> int:
        """Jobs that succeeded."""
        return self._in(JobState.SUCCEEDED)

    @property
    def retrying(self) -> int:
        """Jobs that failed and wait for their next attempt."""
        return self._in(JobState.RETRYING)

    @property
    def dead(self) -> int:
        """Jobs that went to the dead letters."""
        return self._in(JobState.DEAD)

    @property
    def waiting(self) -> int:
        """Jobs that asked to run again later."""
        return self._in(JobState.WAITING)

    @property
    def paused(self) -> int:
        """Jobs that are paused."""
        return self._in(JobState.PAUSED)

    @property
    def cancelled(self) -> int:
        """Jobs that were cancelled."""
        return self._in(JobState.CANCELLED)

    def __str__(self) -> str:
        """A summary: `2 succeeded (1 with warnings), 1 retrying in 4 attempts; 3 left`."""
        states = Counter(job.state for job in self.jobs)
        warned = sum(bool(job.warnings) for job in self.jobs)
        marks = {JobState.SUCCEEDED: f" ({warned} with warnings)"} if warned else {}
        text = ", ".join(f"{states[state]} {state}{marks.get(state, '')}" for state in JobState if states[state])
        text = text or "nothing"
        return f"{text} in {self.attempts} attempts; {self.left} left"

    def _in(self, state: JobState) -> int:
        return sum(job.state is state for job in self.jobs)
