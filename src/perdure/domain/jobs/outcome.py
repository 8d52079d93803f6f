"""What became of an attempt, before anybody has decided what it means.

F3's list, one struct per word. A classifier (the executor's, with the job's triage) makes an outcome; `policy.decide`
turns it into a transition.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from perdure.domain.flows.flow import Awaits


class Failure(Struct, frozen=True):
    """An error as it is kept: its type, what it said, and where it happened."""

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
    """The handler failed in a way that may pass. `retry_after` overrides the backoff; `timed_out` is told apart.

    `kinds` names the error's type and all it derives from, the most specific first: policies by error look there.
    """

    failure: Failure
    retry_after: timedelta | None = None
    timed_out: bool = False
    kinds: tuple[str, ...] = ()


class Permanent(Struct, frozen=True):
    """The handler failed in a way that trying again cannot mend."""

    failure: Failure


class BadArguments(Struct, frozen=True):
    """The stored arguments do not fit the handler: the handler was never started."""

    failure: Failure


class StillPending(Struct, frozen=True):
    """Nothing is wrong, the outside world is not ready: look again later, at no cost."""

    after: timedelta


class Snoozed(Struct, frozen=True):
    """The handler asked to be run again later, at no cost."""

    after: timedelta


class Parked(Struct, frozen=True):
    """The handler waits for something and needs no worker meanwhile: the time, an event, or its children.

    `reason` is the word of `Reason` for it; `after` None: there is no time at which it comes back by itself. What it
    waits for at the same time is in `also`: whichever comes first wakes it.
    """

    reason: str
    after: timedelta | None = None
    event: str | None = None
    family: str | None = None
    note: str | None = None
    also: tuple[Awaits, ...] = ()

    @property
    def awaits(self) -> tuple[Awaits, ...]:
        """All that it waits for besides the time."""
        own = (Awaits(self.event, self.family),) if self.event or self.family else ()
        return own + self.also


class Gated(Struct, frozen=True):
    """A gate holds the job back before it ran, at no cost; `reason` is the word of `Reason` for it."""

    reason: str
    note: str
    after: timedelta | None = None


class Released(Struct, frozen=True):
    """The worker gives the job back untouched, at no cost: it is closing, or it was asked to."""

    after: timedelta | None = None


class UnknownKind(Struct, frozen=True):
    """This worker has no handler of that name; another, newer one may."""


class Paused(Struct, frozen=True):
    """Something outside the job holds it back, at no cost; `until` None waits for somebody to resume it."""

    why: str
    until: timedelta | None = None


class Cancelled(Struct, frozen=True):
    """The job was called off, by its handler or by an operator."""

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
