"""Children as their parent's handler sees them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from msgspec import Struct

from perdure.domain.flows.flow import Child, OnEnd
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.jobs.states import JobState
from perdure.enqueue.calls import Call

R_co = TypeVar("R_co", covariant=True)


class Failures(StrEnum):
    """What `ctx.gather` does about children that died or were cancelled."""

    RAISE = "raise"
    COLLECT = "collect"


class Family(Struct, Generic[R_co], frozen=True):
    """Children spawned under one key, in call order."""

    key: str
    ids: tuple[JobId, ...]
    calls: tuple[Call[R_co], ...]


class ChildResult(Struct, Generic[R_co], frozen=True, kw_only=True):
    """The outcome of one child. `state` None: it was not final when its parent looked.

    A child that is done with warnings is `ok`, and has them in `warnings`.
    """

    ok: bool
    job_id: JobId
    state: JobState | None = None
    value: R_co | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()


class Order(Struct, frozen=True, kw_only=True):
    """Children that a handler asks for, and its requirements. `read` decodes a child's result."""

    children: tuple[NewJob, ...]
    read: Callable[[Child], Any]
    quorum: int | None = None
    on_end: OnEnd = OnEnd.CANCEL
    within: timedelta | None = None
    failures: Failures = Failures.RAISE
