"""Flows: what a job has done already, what it waits for, and the jobs it has spawned.

A handler is run again from its beginning whenever its job comes back. What it has done is kept as *steps*, each under
its own key, so that a step that happened does not happen again; what it waits for is a step too, that is not done yet.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, NewJob
from perdure.domain.jobs.states import JobState


class StepKind(StrEnum):
    """What a step is."""

    CALL = "call"  # of a function
    SLEEP = "sleep"
    EVENT = "event"  # waits for one
    POLL = "poll"
    FAMILY = "family"  # children, spawned and waited for


class StepState(StrEnum):
    """How far a step is."""

    BEGUN = "begun"  # tried, or waiting
    DONE = "done"
    GIVEN_UP = "given up"  # an optional one that failed for good: it yields None, and a warning


class StepRecord(Struct, frozen=True, kw_only=True):
    """One step as it is kept. `key` is its name, with a number from the second use on: `fetch`, `fetch#2`."""

    key: str
    kind: StepKind
    state: StepState
    result: str | None = None  # JSON
    note: str | None = None  # the last error, or why it was given up
    tries: int = 0
    due_at: datetime | None = None  # when it is to be looked at again, at the latest
    begun_at: datetime
    changed_at: datetime | None = None  # when it was last written; the database says so


class StepWrite(Struct, frozen=True):
    """A step to be kept for the job of a claim."""

    claim: Claim
    step: StepRecord


class OnEnd(StrEnum):
    """What becomes of children that are not final when their parent ends."""

    CANCEL = "cancel"
    KEEP = "keep"


class NewFamily(Struct, frozen=True, kw_only=True):
    """Children to be spawned under one key. `quorum`: so many successes are enough to wake the parent.

    `cursor` becomes the parent's checkpoint in the same transaction; None leaves it as it is. `next_link` is the number
    of the document in the parent's plan that is the next link of a chain: it is made when this family has succeeded,
    in the transaction that records so, while the parent sleeps on.
    """

    key: str
    children: tuple[NewJob, ...]
    quorum: int | None = None
    on_end: OnEnd = OnEnd.CANCEL
    cursor: str | None = None
    next_link: int | None = None


class Child(Struct, frozen=True, kw_only=True):
    """One child as its parent sees it. `fate` is its final state; None: it is not final.

    `error` is what was said when it failed last, which stays when it was given a new life since. One that is `joined`
    is no child of this parent: the job was there before, and held the child's unique key.
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
    """How far the children of one key are."""

    key: str
    total: int
    succeeded: int
    failed: int  # dead or cancelled
    quorum: int | None
    on_end: OnEnd

    @property
    def is_settled(self) -> bool:
        """Whether the parent has nothing to wait for: all are final, or the quorum is reached, or out of reach."""
        if self.succeeded + self.failed >= self.total:
            return True
        return self.quorum is not None and (self.succeeded >= self.quorum or self.total - self.failed < self.quorum)


class Awaits(Struct, frozen=True, gc=False):
    """One thing that a parked job waits for besides the time: an event, or the children of one key."""

    event: str | None = None
    family: str | None = None

    def __str__(self) -> str:
        """As it is stored, and shown."""
        return f"family:{self.family}" if self.event is None else f"event:{self.event}"


class Emission(Struct, frozen=True):
    """An event that was emitted. The first payload is kept; `is_first` says whether it was this one."""

    event: str
    payload: str | None
    at: datetime
    is_first: bool
    woken: int = 0


class Progress(Struct, frozen=True, kw_only=True):
    """How far a running job is, in its own words."""

    current: float
    total: float | None
    note: str | None
    at: datetime
