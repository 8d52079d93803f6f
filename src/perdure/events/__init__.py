"""What happens, said once: typed events that logs, metrics, audit and alerts subscribe to.

An event's name is its class, its fields are its facts, and `sentence` words it for people. Emitting costs nothing that
matters while nobody listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, Final, Self

from msgspec import Struct, field, json

from perdure.domain.job import Claim
from perdure.domain.transition import Transition
from perdure.errors import ArgumentError

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


class OfAJob(Struct, frozen=True, kw_only=True):
    """What the application itself has said of a job: its `ref`, and its `meta`, which the log leaves out."""

    ref: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class JobStarted(Event, OfAJob, frozen=True):
    """An attempt begins. Only for those who subscribe to it by name."""

    sentence: ClassVar[str] = "job started"
    job_id: str
    kind: str
    queue: str
    attempt: int


class JobSucceeded(Event, OfAJob, frozen=True):
    """An attempt has succeeded, after so many seconds. Only for those who subscribe to it by name."""

    sentence: ClassVar[str] = "job succeeded"
    job_id: str
    kind: str
    queue: str
    attempt: int
    seconds: float


class JobFailed(Event, OfAJob, frozen=True):
    """An attempt has failed; `will_retry` tells whether another follows. Only for those who subscribe to it by name.

    `exception` is what the handler raised. None: the attempt ran in a process of its own, was out of time, or its
    arguments could not be read.
    """

    sentence: ClassVar[str] = "job failed"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    queue: str
    attempt: int
    seconds: float
    will_retry: bool
    error: str
    exception: BaseException | None = None


def said_of(claim: Claim) -> dict[str, Any]:
    """The fields of `OfAJob`."""
    return {"ref": claim.ref, "meta": json.decode(claim.meta) if claim.meta else {}}


PER_ATTEMPT: Final = (JobStarted, JobSucceeded, JobFailed)
"""Events of every attempt: they are made only while there is a subscriber to one of them."""


class PromotionFailed(Event, frozen=True):
    """A due job could not be made ready; the others go on, and it is tried again a minute later."""

    sentence: ClassVar[str] = "due job could not be made ready"
    level: ClassVar[str] = "error"
    job_id: str
    error: str


class JobRetrying(Event, OfAJob, frozen=True):
    """An attempt failed and another one follows.

    `failures` are those that count against `max_attempts`, which is the limit of the rule for this error. `next_at` is
    when it follows, by the database's clock, up to the moment that it takes to record the failure.
    """

    sentence: ClassVar[str] = "attempt failed, will try again"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    attempt: int
    failures: int
    max_attempts: int | None
    wait: float
    error: str
    traceback: str | None = None
    next_at: datetime | None = None


class JobDied(Event, OfAJob, frozen=True):
    """A job went to the dead letters."""

    sentence: ClassVar[str] = "job is dead"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    attempt: int
    reason: str
    error: str
    traceback: str | None = None

    @classmethod
    def by(cls, move: Transition) -> Self:
        """The death of a job by this move."""
        claim, failure = move.claim, move.failure
        traceback = None if failure is None else failure.traceback
        facts = claim.job_id, claim.kind, claim.attempt, move.reason.value, str(failure or "")
        return cls(*facts, traceback, **said_of(claim))


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


class LeasesReturned(Event, frozen=True):
    """A worker held jobs that it did not run, because the database went back in time; they are ready again."""

    sentence: ClassVar[str] = "leases that this worker does not run went back, at no cost"
    level: ClassVar[str] = "warning"
    worker: str
    job_ids: tuple[str, ...]


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


class LoopSkipped(Event, frozen=True):
    """A tick came due while the one before still ran."""

    sentence: ClassVar[str] = "still running, skipping tick"
    level: ClassVar[str] = "warning"
    loop: str
    running_for: float
    skipped: int  # in all, since the loop began


class LoopOverran(Event, frozen=True):
    """A tick exceeded its limit and was told to stop."""

    sentence: ClassVar[str] = "tick exceeded its limit"
    level: ClassVar[str] = "error"
    loop: str
    limit: float
    stopped: bool  # whether it obeyed


class TicksLeft(Event, frozen=True):
    """A worker closed while ticks of its loops were still under way, which had been told to stop."""

    sentence: ClassVar[str] = "worker closed with ticks that do not stop"
    level: ClassVar[str] = "error"
    worker: str
    loops: tuple[str, ...]


class LeadTaken(Event, frozen=True):
    """This process leads now: it does for the fleet what need not be done twice."""

    sentence: ClassVar[str] = "leading"
    name: str
    holder: str
    term: int


class LeadLost(Event, frozen=True):
    """This process leads no more."""

    sentence: ClassVar[str] = "not leading any more"
    name: str
    holder: str
    term: int
    because: str


class WorkerOpening(Event, frozen=True):
    """A worker takes up work step by step; `limit` jobs may run at once by now."""

    sentence: ClassVar[str] = "✿ worker opening"
    worker: str
    queue: str  # empty: all of them together
    limit: int
    of: int


class OrphansReturning(Event, frozen=True):
    """Jobs of dead workers come back one by one, those with a checkpoint first."""

    sentence: ClassVar[str] = "✿ orphans return step by step"
    queue: str
    jobs: int
    with_checkpoint: int
    over: float  # seconds until the last one is back


class OrphansWaiting(Event, frozen=True):
    """More jobs of dead workers wait until those that are on their way are back."""

    sentence: ClassVar[str] = "✿ more orphans wait for the next round"
    queue: str
    next_round_in: float


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


class ScheduleFired(Event, frozen=True):
    """A nominal time of a schedule has made its job."""

    sentence: ClassVar[str] = "schedule fired"
    schedule: str
    nominal: str
    job_id: str
    late: float
    cause: str


class ScheduleMissed(Event, frozen=True):
    """Nobody was there at nominal times of a schedule, and they are too old now or stand behind a later one."""

    sentence: ClassVar[str] = "nominal times missed"
    level: ClassVar[str] = "warning"
    schedule: str
    missed: int
    first: str
    last: str


class ScheduleOverlapped(Event, frozen=True):
    """A nominal time was let go because the schedule's last job is not finished."""

    sentence: ClassVar[str] = "nominal time let go, the last job is not finished"
    level: ClassVar[str] = "warning"
    schedule: str
    nominal: str


class ScheduleBroken(Event, frozen=True):
    """A stored schedule cannot be read; it does not fire until somebody mends it."""

    sentence: ClassVar[str] = "schedule cannot be read"
    level: ClassVar[str] = "error"
    schedule: str
    error: str


class EventLoopBlocked(Event, frozen=True):
    """Something blocks the event loop; `stack` is where it is."""

    sentence: ClassVar[str] = "event loop blocked"
    level: ClassVar[str] = "warning"
    seconds: float
    stack: str


class StoreSlow(Event, frozen=True):
    """A call to the store takes too long; `stack` is what it waits for."""

    sentence: ClassVar[str] = "database call takes long"
    level: ClassVar[str] = "warning"
    what: str
    seconds: float
    stack: str


class HeartbeatStuck(Event, frozen=True):
    """The worker has not shown for too long that it lives; its lease is in danger."""

    sentence: ClassVar[str] = "heartbeat is stuck"
    level: ClassVar[str] = "error"
    seconds: float
    stack: str


class BackupMade(Event, frozen=True):
    """A copy of the database was made and found sound."""

    sentence: ClassVar[str] = "backup made"
    path: str
    bytes: int
    jobs: int
    seconds: float


class FamilySpawned(Event, frozen=True):
    """A job has spawned children."""

    sentence: ClassVar[str] = "children spawned"
    job_id: str
    kind: str
    family: str
    children: int


class FamilySettled(Event, frozen=True):
    """A job has nothing more to wait for from its children."""

    sentence: ClassVar[str] = "children settled"
    job_id: str
    kind: str
    family: str
    children: int
    succeeded: int
    failed: int
    because: str


class FamilyRecovered(Event, frozen=True):
    """A job came back while it waited for its children: it waits on, or spawns them anew."""

    sentence: ClassVar[str] = "parent came back while it waited for its children"
    job_id: str
    kind: str
    family: str
    decision: str  # stays in aggregate, or back to ingest
    because: str
    children: int = 0  # how many were found


class StepGivenUp(Event, frozen=True):
    """An optional step has failed for good: it yields None, and its job, if it succeeds, does so with a warning."""

    sentence: ClassVar[str] = "optional step given up"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    step: str
    tries: int
    error: str


class FamilyRefused(Event, frozen=True):
    """A job that has lost its claim wanted to spawn children; none was stored."""

    sentence: ClassVar[str] = "children not spawned"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    family: str
    because: str


class BreakerOpened(Event, frozen=True):
    """An outside system is left alone: too many jobs have failed at it, or a trial has; or somebody wants it so.

    What was done by hand each worker tells that meets the breaker.
    """

    sentence: ClassVar[str] = "breaker open"
    level: ClassVar[str] = "warning"
    breaker: str
    until: str | None
    because: str


class BreakerHalfOpen(Event, frozen=True):
    """A few jobs try whether an outside system is back."""

    sentence: ClassVar[str] = "breaker half open"
    breaker: str


class BreakerClosed(Event, frozen=True):
    """An outside system is called again, slowly at first."""

    sentence: ClassVar[str] = "breaker closed"
    breaker: str
    because: str


class JobsPaused(Event, frozen=True):
    """A worker has heard that an operator holds jobs back: of a queue, of a kind, or with certain arguments."""

    sentence: ClassVar[str] = "jobs paused by an operator"
    level: ClassVar[str] = "warning"
    pause: str
    queue: str | None
    kind: str | None
    args: str | None
    until: str | None
    by: str
    because: str


class JobsResumed(Event, frozen=True):
    """A worker has heard that a pause is over."""

    sentence: ClassVar[str] = "pause over"
    pause: str
    queue: str | None
    kind: str | None


class GateNearlyFull(Event, frozen=True):
    """A rate or a budget has used four fifths of a window; emitted at most once a minute for each of them."""

    sentence: ClassVar[str] = "gate nearly full"
    level: ClassVar[str] = "warning"
    gate: str
    used: float
    limit: float
    per: str


Listener = Callable[[Event], None]


class Emitter:
    """Hands each event to every listener; a listener that fails never harms the work."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self.follows_attempts = False
        """Whether there is a subscriber to the events of every attempt."""

    def subscribe(self, listener: Listener, *types: type[Event]) -> Callable[[], None]:
        """Add a listener and return the way to remove it.

        With `types` it hears only these; without, it hears all but the events of every attempt.
        """
        for wanted in types:
            if not (isinstance(wanted, type) and issubclass(wanted, Event)):
                raise ArgumentError("types", f"must be classes of events such as JobFailed, got {wanted!r}")
        entry = listener, types
        self._listeners.append(entry)
        self._look_round()

        def unsubscribe() -> None:
            self._listeners.remove(entry)
            self._look_round()

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every listener that wants to hear of it."""
        for listener, types in tuple(self._listeners):
            if not (isinstance(event, types) if types else not isinstance(event, PER_ATTEMPT)):
                continue
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a listener is somebody else's code
                _log.exception("listener %r failed on %s", listener, type(event).__name__)

    def _look_round(self) -> None:
        wanted = {one for _, types in self._listeners for one in types}
        self.follows_attempts = any(issubclass(one, wanted_one) for one in PER_ATTEMPT for wanted_one in wanted)
