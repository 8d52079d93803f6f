"""What happens, said once: typed events that logs, metrics, audit and alerts subscribe to.

An event's name is its class, its fields are its facts, and `sentence` words it for people. Emitting costs nothing that
matters while nobody listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ClassVar, Self

from msgspec import Struct
from msgspec.structs import asdict

from perdure.domain.transition import Transition

_log = logging.getLogger("perdure")


class Event(Struct, frozen=True):
    """The root of all events."""

    sentence: ClassVar[str] = ""
    level: ClassVar[str] = "info"


class WorkerOpened(Event, frozen=True):
    """A worker is ready to take jobs."""

    sentence: ClassVar[str] = "✿ worker open"
    worker: str
    worker_id: int
    queues: tuple[str, ...]
    concurrency: int


class WorkerClosed(Event, frozen=True):
    """A worker has stopped in good order."""

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


class WorkersBuried(Event, frozen=True):
    """Workers were found dead."""

    sentence: ClassVar[str] = "dead workers found"
    level: ClassVar[str] = "warning"
    workers: tuple[str, ...]
    because: str


class ClockJumped(Event, frozen=True):
    """The database's clock jumped; for one lease no worker is declared dead for its silence."""

    sentence: ClassVar[str] = "the database's clock jumped"
    level: ClassVar[str] = "warning"
    seconds: float


class JobsRescued(Event, frozen=True):
    """Jobs of dead workers came back."""

    sentence: ClassVar[str] = "jobs rescued from dead workers"
    level: ClassVar[str] = "warning"
    ready: int
    dead: int


class RescueFailed(Event, frozen=True):
    """A job could not be rescued; the others go on, and it is tried again."""

    sentence: ClassVar[str] = "job could not be rescued"
    level: ClassVar[str] = "error"
    job_id: str
    error: str


class JobRetrying(Event, frozen=True):
    """An attempt failed and another one follows."""

    sentence: ClassVar[str] = "attempt failed, will try again"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    attempt: int
    max_attempts: int | None
    wait: float
    error: str


class JobDied(Event, frozen=True):
    """A job went to the dead letters."""

    sentence: ClassVar[str] = "job is dead"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    attempt: int
    reason: str
    error: str

    @classmethod
    def by(cls, move: Transition) -> Self:
        """The death of a job by this move."""
        claim = move.claim
        return cls(claim.job_id, claim.kind, claim.attempt, move.reason.value, str(move.failure or ""))


class UnknownKindSeen(Event, frozen=True):
    """A job came for which this worker has no handler; what becomes of it is a setting."""

    sentence: ClassVar[str] = "no handler for this kind here"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str


class StaleWrites(Event, frozen=True):
    """Acknowledgements came from attempts that had lost their lease; they changed nothing."""

    sentence: ClassVar[str] = "stale acknowledgements ignored"
    level: ClassVar[str] = "warning"
    job_ids: tuple[str, ...]


class RecordRefused(Event, frozen=True):
    """The database refuses what an acknowledgement holds; the job goes to the dead letters with the cause."""

    sentence: ClassVar[str] = "acknowledgement refused by the database"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    error: str


class RecordsLeft(Event, frozen=True):
    """A worker closed before it could record the ends of these many attempts; those jobs come back."""

    sentence: ClassVar[str] = "worker closed with attempts that could not be recorded"
    level: ClassVar[str] = "error"
    worker: str
    attempts: int


class StoreTrouble(Event, frozen=True):
    """The database failed a background task, which tries again."""

    sentence: ClassVar[str] = "database trouble, trying again"
    level: ClassVar[str] = "warning"
    what: str
    error: str
    wait: float


class StoreRecovered(Event, frozen=True):
    """The database answers again."""

    sentence: ClassVar[str] = "database answers again"
    what: str
    failures: int


class HandlerStuck(Event, frozen=True):
    """A handler ignored its cancellation or time limit; its attempt was recorded without it."""

    sentence: ClassVar[str] = "handler does not stop, its attempt was given up"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    because: str


class LoopFailed(Event, frozen=True):
    """A tick of a periodic loop failed; the loop goes on."""

    sentence: ClassVar[str] = "tick failed"
    level: ClassVar[str] = "error"
    loop: str
    error: str


class JobsPruned(Event, frozen=True):
    """Finished jobs were deleted after their time."""

    sentence: ClassVar[str] = "old jobs pruned"
    jobs: int


Listener = Callable[[Event], None]


class Emitter:
    """Hands each event to every listener; a listener that fails never harms the work."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener and return the way to remove it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a listener is somebody else's code
                _log.exception("listener %r failed on %s", listener, type(event).__name__)


def log_event(event: Event) -> None:
    """The listener that writes the log."""
    import structlog  # noqa: PLC0415 - it is slow to load, and a producer needs no log

    structlog.stdlib.get_logger("perdure").log(_LEVELS[event.level], event.sentence, **asdict(event))


_LEVELS = {"info": 20, "warning": 30, "error": 40}
