"""A worker as the fleet knows it, and the identity of the process behind it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import WorkerId


class ProcessIdentity(Struct, frozen=True):
    """Which process we mean, beyond doubt: a pid may be used again, after a reboot or in another container.

    `host` names machine, boot and pid namespace together; `started` is the process's own start time in kernel ticks.
    """

    host: str
    pid: int
    started: int


class Phase(StrEnum):
    """What a worker is about."""

    OPENING = "opening"  # taking up work step by step
    OPEN = "open"
    QUIET = "quiet"  # claims nothing, lets the rest run
    CLOSING = "closing"
    CLOSED = "closed"  # gone in good order


class NewWorker(Struct, frozen=True, kw_only=True):
    """A worker that introduces itself."""

    name: str
    process: ProcessIdentity
    queues: tuple[str, ...]
    concurrency: int
    version: str


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker as operators and rescuers see it. A dead one stays listed while jobs or attempts speak of it."""

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
    quiet_at: datetime | None = None  # when somebody asked it to be quiet
