"""What happens to workers and their processes, from opening to closing."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class WorkerOpened(Event, frozen=True):
    """A worker is ready to take jobs."""

    sentence: ClassVar[str] = "✿ worker open"
    worker: str
    worker_id: int
    queues: tuple[str, ...]
    concurrency: int


class WorkerClosed(Event, frozen=True):
    """A worker has stopped in good order. `finished` does not count the attempts whose jobs were released."""

    sentence: ClassVar[str] = "❀ worker closed"
    worker: str
    finished: int
    released: int


class WorkerLost(Event, frozen=True):
    """A worker was declared dead although it lives; everything that it held is lost to it."""

    sentence: ClassVar[str] = "worker lost its lease and starts over under a new id"
    level: ClassVar[str] = "error"
    worker: str
    worker_id: int
    running: int


class WorkerRecycled(Event, frozen=True):
    """A worker closes because it has done its share; a fresh process is to take its place."""

    sentence: ClassVar[str] = "worker closes for a fresh process"
    worker: str
    because: str


class WorkerProcessStarted(Event, frozen=True):
    """The supervisor has started a worker process."""

    sentence: ClassVar[str] = "worker process started"
    place: int
    pid: int


class WorkerProcessDied(Event, frozen=True):
    """A worker process ended that nobody had stopped; the supervisor starts another one."""

    sentence: ClassVar[str] = "worker process died, starting another one"
    level: ClassVar[str] = "error"
    place: int
    pid: int
    cause: str
    wait: float


class WorkerProcessKilled(Event, frozen=True):
    """A worker process had not stopped in time."""

    sentence: ClassVar[str] = "worker process did not stop in time and was killed"
    level: ClassVar[str] = "error"
    place: int
    pid: int


class ProcessLingered(Event, frozen=True):
    """A worker had closed, and something that no longer matters kept its process from ending."""

    sentence: ClassVar[str] = "worker is closed, and its process was ended without what still ran in it"
    level: ClassVar[str] = "error"
    pid: int
    still_running: tuple[str, ...]


class StopUnheard(Event, frozen=True):
    """A handler blocked the event loop for so long that a signal to stop was never heard; the rescue has the jobs."""

    sentence: ClassVar[str] = "the event loop was blocked past the stop timeout, and the process was ended"
    level: ClassVar[str] = "error"
    pid: int
    still_running: tuple[str, ...]


class LifespanFailed(Event, frozen=True):
    """A lifespan of the application failed to close; the others were closed all the same."""

    sentence: ClassVar[str] = "lifespan failed to close"
    level: ClassVar[str] = "error"
    worker: str
    lifespan: str
    error: str


class WorkerOpening(Event, frozen=True):
    """A worker takes up work step by step; `limit` jobs may run at once by now."""

    sentence: ClassVar[str] = "✿ worker opening"
    worker: str
    queue: str  # empty: all of them together
    limit: int
    of: int


class WorkerQuiet(Event, frozen=True):
    """A worker claims nothing more, and lets run what runs."""

    sentence: ClassVar[str] = "worker is quiet: it claims nothing more"
    worker: str
    because: str
    running: int


class WorkerLoud(Event, frozen=True):
    """A worker that was quiet claims again."""

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
    """A program waits until a worker has closed and nothing of it runs any more."""

    sentence: ClassVar[str] = "waiting for scheduler to complete in-flight work"
    worker: str
    running: int
    loops: tuple[str, ...]  # those with a tick under way
    within: float


class NameShared(Event, frozen=True):
    """Another living worker has the same name. Nothing is at risk, but people will mix them up."""

    sentence: ClassVar[str] = "another living worker has this name"
    level: ClassVar[str] = "warning"
    worker: str
    others: tuple[str, ...]  # host and pid of each


class EventLoopBlocked(Event, frozen=True):
    """Something blocks the event loop; `stack` is where it is."""

    sentence: ClassVar[str] = "event loop blocked"
    level: ClassVar[str] = "warning"
    seconds: float
    stack: str


class HeartbeatStuck(Event, frozen=True):
    """The worker has not shown for too long that it lives; its lease is in danger."""

    sentence: ClassVar[str] = "heartbeat is stuck"
    level: ClassVar[str] = "error"
    seconds: float
    stack: str
