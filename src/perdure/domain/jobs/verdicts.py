"""Verdicts: exceptions that a handler raises, or a triage returns, to decide about the job (F3).

Any other exception is a failure that the job's `Retry` handles. Most handlers need none of these.

Verdict
├── Finish        done, with warnings if any are given
├── RetryAfter    failed; retry at the given time
├── Permanent     failed; a retry cannot help
├── Pending       the outside system is not ready: poll again later, without using an attempt
├── Snooze        run again later, without using an attempt
├── Release       give the job back to the queue unchanged, without using an attempt
├── Pause         hold the job back, for a time or until it is resumed, without using an attempt
└── CancelJob     cancel the job
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.domain.duration import LONGEST_DURATION, Duration, parse_duration
from perdure.errors import ArgumentError


class Verdict(Exception):  # noqa: N818 - it is a word about a job, not always an error
    """Base class of all verdicts; an application may derive its own from any of them."""


class Finish(Verdict):
    """The job is done and has no result; each given warning is stored with it."""

    def __init__(self, *warnings: str) -> None:
        super().__init__(*warnings)
        self.warnings = warnings

    def __str__(self) -> str:
        return "; ".join(self.warnings)


class Permanent(Verdict):
    """The attempt failed, and a retry cannot help: the job goes to the dead letters."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class CancelJob(Verdict):
    """The job is cancelled; `why` is stored with it."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)


class _Later(Verdict):
    """A verdict with a time: a duration, an instant, or None to use the default.

    `at_most` limits the wait, even one that an outside system asked for.
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
        self.at_most = LONGEST_DURATION if at_most is None else parse_duration("at_most", at_most)

    def after(self, now: datetime) -> timedelta | None:
        """The wait from `now` on, never negative; None: the default applies."""
        wait = self.wait - now if isinstance(self.wait, datetime) else self.wait
        return None if wait is None else min(max(wait, timedelta(0)), self.at_most)

    def __str__(self) -> str:
        return self.message


class RetryAfter(_Later):
    """The attempt failed and counts; the retry comes after `wait`, or after the job's backoff if that is None."""


class Pending(_Later):
    """The outside system is not ready: poll again after `wait`, without using an attempt."""


class Snooze(_Later):
    """Run the job again after `wait`, without using an attempt."""

    def __init__(self, wait: Duration | datetime, message: str = "") -> None:
        super().__init__(wait, message)


class Release(_Later):
    """Give the job back unchanged, without using an attempt: at once, or not before `wait` has passed."""


class Pause(Verdict):
    """Hold the job back because of `why`, for `wait` or until it is resumed, without using an attempt."""

    def __init__(self, why: str, wait: Duration | None = None) -> None:
        super().__init__(why, wait)
        self.why = why
        self.wait = None if wait is None else parse_duration("wait", wait)

    def __str__(self) -> str:
        return self.why
