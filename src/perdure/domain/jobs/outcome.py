"""The outcome of an attempt, before it is decided what it means for the job.

F3's list, one struct per word. A classifier (the executor's, with the job's triage) makes an outcome; `policy.decide`
turns it into a transition.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.flows.flow import Awaits

ERROR_LIMIT_CHARACTERS: Final = 500
"""How much of an error's type and message a view of its job shows, and the parent of its job."""


class Failure(Struct, frozen=True):
    """An error as stored: its type, message and traceback."""

    error_type: str
    message: str
    traceback: str | None = None

    def __str__(self) -> str:
        return f"{self.error_type}: {self.message}"


class Done(Struct, frozen=True, gc=False):
    """The handler returned. `result` is JSON, None when it returned None; warnings make it "done with warnings"."""

    result: str | None = None
    warnings: tuple[str, ...] = ()


class Failed(Struct, frozen=True):
    """The handler failed, and a retry may help. `retry_after` overrides the backoff; `timed_out` marks a time limit.

    `kinds` names the error's type and its base classes, the most specific first: policies by error use them.
    """

    failure: Failure
    retry_after: timedelta | None = None
    timed_out: bool = False
    kinds: tuple[str, ...] = ()


class Permanent(Struct, frozen=True):
    """The handler failed, and a retry cannot help."""

    failure: Failure


class BadArguments(Struct, frozen=True):
    """The stored arguments do not fit the handler: the handler was never started."""

    failure: Failure


class StillPending(Struct, frozen=True):
    """The outside system is not ready: poll again later. No attempt is used."""

    after: timedelta


class Snoozed(Struct, frozen=True):
    """The handler asked to run again later. No attempt is used."""

    after: timedelta


class Parked(Struct, frozen=True):
    """The handler waits for a time, an event or its children, and needs no worker meanwhile.

    `reason` is its word of `Reason`; `after` None: it does not come back by itself. `also` holds what it waits for at
    the same time: the first one wakes it.
    """

    reason: str
    after: timedelta | None = None
    event: str | None = None
    family: str | None = None
    note: str | None = None
    also: tuple[Awaits, ...] = ()

    @property
    def awaits(self) -> tuple[Awaits, ...]:
        """Everything that it waits for besides the time."""
        own = (Awaits(self.event, self.family),) if self.event or self.family else ()
        return own + self.also


class Gated(Struct, frozen=True):
    """A gate holds the job back before it runs; no attempt is used. `reason` is its word of `Reason`."""

    reason: str
    note: str
    after: timedelta | None = None


class Released(Struct, frozen=True):
    """The worker gives the job back unchanged, without using an attempt: it is closing, or the handler asked for it."""

    after: timedelta | None = None


class UnknownKind(Struct, frozen=True):
    """This worker has no handler of that name; a newer one may."""


class Paused(Struct, frozen=True):
    """Something outside the job pauses it; no attempt is used. `until` None: until an operator resumes it."""

    why: str
    until: timedelta | None = None


class Cancelled(Struct, frozen=True):
    """The job was cancelled, by its handler or by an operator."""

    why: str = ""


class Crashed(Struct, frozen=True):
    """The process that held the job is gone, or lost its lease."""

    failure: Failure


Outcome = (
    Done
    | Failed
    | Permanent
    | BadArguments
    | StillPending
    | Snoozed
    | Parked
    | Gated
    | Released
    | UnknownKind
    | Paused
    | Cancelled
    | Crashed
)
