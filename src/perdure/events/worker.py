"""Events of workers and their processes, from opening to closing."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class WorkerOpened(Event, frozen=True):
    """A worker is ready to claim jobs."""

    sentence: ClassVar[str] = "✿ worker open"
    worker: str
    worker_id: int
    queues: tuple[str, ...]
    concurrency: int


class WorkerClosed(Event, frozen=True):
    """A worker stopped cleanly. `finished` excludes attempts whose jobs were released."""

    sentence: ClassVar[str] = "❀ worker closed"
    worker: str
    finished: int
    released: int


class WorkerLost(Event, frozen=True):
    """A worker was declared dead while still alive; it has lost all its leases."""

    sentence: ClassVar[str] = "worker lost its lease and continues under a new id"
    level: ClassVar[str] = "error"
    worker: str
    worker_id: int
    running: int


class WorkerRecycled(Event, frozen=True):
    """A worker closes because it has reached its recycling limit; a new process replaces it."""

    sentence: ClassVar[str] = "worker closes, a new process replaces it"
    worker: str
    because: str


class WorkerProcessStarted(Event, frozen=True):
    """The supervisor started a worker process."""

    sentence: ClassVar[str] = "worker process started"
    place: int
    pid: int


class WorkerProcessDied(Event, frozen=True):
    """A worker process ended without being stopped; the supervisor starts another one."""

    sentence: ClassVar[str] = "worker process died, starting another one"
    level: ClassVar[str] = "error"
    place: int
    pid: int
    cause: str
    wait: float


class WorkerProcessKilled(Event, frozen=True):
    """A worker process did not stop in time."""

    sentence: ClassVar[str] = "worker process did not stop in time and was killed"
    level: ClassVar[str] = "error"
    place: int
    pid: int


class ProcessLingered(Event, frozen=True):
    """A worker closed, but something irrelevant kept its process from ending."""

    sentence: ClassVar[str] = "worker is closed, its process was ended while something still ran in it"
    level: ClassVar[str] = "error"
    pid: int
    still_running: tuple[str, ...]


class StopUnheard(Event, frozen=True):
    """A handler blocked the event loop past the stop timeout, so the stop signal was not seen; its jobs are rescued."""

    sentence: ClassVar[str] = "the event loop was blocked past the stop timeout, and the process was ended"
    level: ClassVar[str] = "error"
    pid: int
    still_running: tuple[str, ...]


class LifespanFailed(Event, frozen=True):
    """A lifespan of the application failed to close; the others were closed."""

    sentence: ClassVar[str] = "lifespan failed to close"
    level: ClassVar[str] = "error"
    worker: str
    lifespan: str
    error: str


class WorkerOpening(Event, frozen=True):
    """A worker ramps up; `limit` jobs may run at once now."""

    sentence: ClassVar[str] = "✿ worker opening"
    worker: str
    queue: str  # empty: all of them together
    limit: int
    of: int


class WorkerQuiet(Event, frozen=True):
    """A worker stopped claiming; its running jobs continue."""

    sentence: ClassVar[str] = "worker is quiet: it stopped claiming"
    worker: str
    because: str
    running: int


class WorkerLoud(Event, frozen=True):
    """A quiet worker claims again."""

    sentence: ClassVar[str] = "worker claims again"
    worker: str
    because: str


class WorkerClosing(Event, frozen=True):
    """A worker begins to close."""

    sentence: ClassVar[str] = "❀ worker closing"
    worker: str
    running: int
    within: float


class CompletionAwaited(Event, frozen=True):
    """A program waits until a worker has closed and none of its work runs any more."""

    sentence: ClassVar[str] = "waiting for scheduler to complete in-flight work"
    worker: str
    running: int
    loops: tuple[str, ...]  # those with a tick in progress
    within: float


class NameShared(Event, frozen=True):
    """Another live worker has the same name. This is safe, but confuses people."""

    sentence: ClassVar[str] = "another live worker has this name"
    level: ClassVar[str] = "warning"
    worker: str
    others: tuple[str, ...]  # host and pid of each


class EventLoopBlocked(Event, frozen=True):
    """Something blocks the event loop; `stack` shows where."""

    sentence: ClassVar[str] = "event loop blocked"
    level: ClassVar[str] = "warning"
    seconds: float
    stack: str


class HeartbeatStuck(Event, frozen=True):
    """The worker has sent no heartbeat for too long; it may lose its lease."""

    sentence: ClassVar[str] = "heartbeat is stuck"
    level: ClassVar[str] = "error"
    seconds: float
    stack: str
