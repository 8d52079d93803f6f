"""What a handler says by raising, and a triage by returning: F3's words as exceptions.

Any other exception is a failure that the job's `Retry` deals with. Whoever says nothing special never needs these.

Verdict
├── Finish        done, with warnings if any are given
├── RetryAfter    failed; try again at a time of our choosing
├── Permanent     failed; trying again cannot mend it
├── Pending       nothing is wrong, the outside world is not ready: look again later, at no cost
├── Snooze        run again later, at no cost
├── Release       give the job back to the queue untouched, at no cost
├── Pause         hold the job back, for a time or until somebody resumes it, at no cost
└── CancelJob     call the job off
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.domain.duration import LONGEST, Duration, parse_duration
from perdure.errors import ArgumentError


class Verdict(Exception):  # noqa: N818 - it is a word about a job, not always an error
    """The root of all verdicts; an application may derive its own from any of them."""


class Finish(Verdict):
    """The job is done and has no result; each warning given is kept with it."""

    def __init__(self, *warnings: str) -> None:
        super().__init__(*warnings)
        self.warnings = warnings

    def __str__(self) -> str:
        return "; ".join(self.warnings)


class Permanent(Verdict):
    """The attempt failed, and no other one would do better: the job goes to the dead letters."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class CancelJob(Verdict):
    """The job is called off; `why` is kept with it."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)


class _Later(Verdict):
    """A verdict with a time: a span, an instant, or None where something else decides.

    `at_most` bounds the wait, whoever asked for it.
    """

    def __init__(
        self, wait: Duration | datetime | None = None, message: str = "", *, at_most: Duration | None = None
    ) -> None:
        super().__init__(wait, message)
        if isinstance(wait, datetime):
            if wait.tzinfo is None:
                raise ArgumentError("wait", f"must say its time zone, got {wait!r}; use datetime.now(UTC) + …")
        elif wait is not None:
            wait = parse_duration("wait", wait)
        self.wait = wait
        self.message = message
        self.at_most = LONGEST if at_most is None else parse_duration("at_most", at_most)

    def after(self, now: datetime) -> timedelta | None:
        """How long to wait from `now` on, never less than nothing; None leaves it to somebody else."""
        wait = self.wait - now if isinstance(self.wait, datetime) else self.wait
        return None if wait is None else min(max(wait, timedelta(0)), self.at_most)

    def __str__(self) -> str:
        return self.message


class RetryAfter(_Later):
    """The attempt failed and counts; the next one comes after `wait`, or after the job's backoff if that is None."""


class Pending(_Later):
    """Nothing is wrong and nothing is ready: look again after `wait`, at no cost."""


class Snooze(_Later):
    """Run the job again after `wait`, at no cost."""

    def __init__(self, wait: Duration | datetime, message: str = "") -> None:
        super().__init__(wait, message)


class Release(_Later):
    """Give the job back untouched, at no cost: at once, or not before `wait` has passed."""


class Pause(Verdict):
    """Hold the job back because of `why`, at no cost, for `wait` or until somebody resumes it."""

    def __init__(self, why: str, wait: Duration | None = None) -> None:
        super().__init__(why, wait)
        self.why = why
        self.wait = None if wait is None else parse_duration("wait", wait)

    def __str__(self) -> str:
        return self.why
