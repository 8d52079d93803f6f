"""A worker as the fleet sees it, and the identity of its process."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import WorkerId


class ProcessIdentity(Struct, frozen=True):
    """The exact process: a pid may be reused after a reboot or in another container.

    `host` names machine, boot and pid namespace together; `started` is the process's start time in kernel ticks.
    """

    host: str
    pid: int
    started: int


class Phase(StrEnum):
    """The phase of a worker."""

    OPENING = "opening"  # ramps up
    OPEN = "open"
    QUIET = "quiet"  # claims nothing, finishes its running jobs
    CLOSING = "closing"
    CLOSED = "closed"  # closed cleanly


class NewWorker(Struct, frozen=True, kw_only=True):
    """A worker that registers."""

    name: str
    process: ProcessIdentity
    queues: tuple[str, ...]
    concurrency: int
    version: str


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker as operators and rescuers see it. A dead one stays listed while jobs or attempts refer to it."""

    id: WorkerId
    name: str
    process: ProcessIdentity
    queues: tuple[str, ...]
    concurrency: int
    version: str
    started_at: datetime
    beat_at: datetime
    dead_at: datetime | None
    running: int
    phase: Phase = Phase.OPEN
    quiet_at: datetime | None = None  # since when it claims nothing, on an operator's request
