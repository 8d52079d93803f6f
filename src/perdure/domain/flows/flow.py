"""Flows: the steps that a job has done, what it waits for, and the jobs it has spawned.

When a job comes back, its handler runs again from the beginning. Completed work is stored as *steps*, each under its
own key, so that a completed step does not run again; a wait is a step that is not done yet.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, NewJob
from perdure.domain.jobs.states import JobState


class StepKind(StrEnum):
    """The kind of a step."""

    CALL = "call"  # calls a function
    SLEEP = "sleep"
    EVENT = "event"  # waits for one
    POLL = "poll"
    FAMILY = "family"  # children, spawned and waited for


class StepState(StrEnum):
    """The status of a step."""

    BEGUN = "begun"  # tried, or waiting
    DONE = "done"
    GIVEN_UP = "given up"  # an optional one that failed for good: it returns None, with a warning


class StepRecord(Struct, frozen=True, kw_only=True):
    """One step as stored. `key` is its name, with a number from the second use on: `fetch`, `fetch#2`."""

    key: str
    kind: StepKind
    state: StepState
    result: str | None = None  # JSON
    note: str | None = None  # the last error, or why it was given up
    tries: int = 0
    due_at: datetime | None = None  # when to look at it again, at the latest
    begun_at: datetime
    changed_at: datetime | None = None  # when it was last written, by the database's clock


class StepWrite(Struct, frozen=True):
    """A step to be stored for the job of a claim."""

    claim: Claim
    step: StepRecord


class OnEnd(StrEnum):
    """What happens to children that are not final when their parent ends."""

    CANCEL = "cancel"
    KEEP = "keep"


class NewFamily(Struct, frozen=True, kw_only=True):
    """Children to be spawned under one key. `quorum`: this many successes wake the parent.

    `cursor` becomes the parent's checkpoint in the same transaction; None keeps the current one. `next_link` is the
    index in the parent's plan of the next link of a chain: the engine makes it when this family has succeeded, in the
    transaction that records the success, while the parent stays parked.
    """

    key: str
    children: tuple[NewJob, ...]
    quorum: int | None = None
    on_end: OnEnd = OnEnd.CANCEL
    cursor: str | None = None
    next_link: int | None = None


class Child(Struct, frozen=True, kw_only=True):
    """One child as its parent sees it. `fate` is its final state; None: it is not final.

    `error` is the last failure's message; it stays when the child is requeued. A `joined` job is not a child of this
    parent: it existed before, and held the child's unique key.
    """

    number: int
    job_id: JobId
    kind: str
    fate: JobState | None
    result: str | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()
    joined: bool = False


class FamilyView(Struct, frozen=True, kw_only=True):
    """The status of the children of one key."""

    key: str
    total: int
    succeeded: int
    failed: int  # dead or cancelled
    quorum: int | None
    on_end: OnEnd

    @property
    def is_settled(self) -> bool:
        """Whether the parent can stop waiting: all are final, or the quorum is reached or out of reach."""
        if self.succeeded + self.failed >= self.total:
            return True
        return self.quorum is not None and (self.succeeded >= self.quorum or self.total - self.failed < self.quorum)


class Awaits(Struct, frozen=True, gc=False):
    """One thing that a parked job waits for besides the time: an event, or the children of one key."""

    event: str | None = None
    family: str | None = None

    def __str__(self) -> str:
        """The text form, as stored and shown."""
        return f"family:{self.family}" if self.event is None else f"event:{self.event}"


class Emission(Struct, frozen=True):
    """An emitted event. The first payload is kept; `is_first` says whether this emission was the first."""

    event: str
    payload: str | None
    at: datetime
    is_first: bool
    woken: int = 0


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of a running job, as the job reported it."""

    current: float
    total: float | None
    note: str | None
    at: datetime
