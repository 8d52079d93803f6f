"""Events of the background loops: rescue, promotion, pruning, leadership."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class WorkersBuried(Event, frozen=True):
    """Workers were declared dead."""

    sentence: ClassVar[str] = "dead workers found"
    level: ClassVar[str] = "warning"
    workers: tuple[str, ...]
    because: str


class JobsRescued(Event, frozen=True):
    """Jobs of dead workers were rescued."""

    sentence: ClassVar[str] = "jobs rescued from dead workers"
    level: ClassVar[str] = "warning"
    ready: int
    dead: int


class RescueFailed(Event, frozen=True):
    """A job could not be rescued; the others proceed, and it is retried."""

    sentence: ClassVar[str] = "job could not be rescued"
    level: ClassVar[str] = "error"
    job_id: str
    error: str


class PromotionFailed(Event, frozen=True):
    """A due job could not be made ready; the others proceed, and it is retried a minute later."""

    sentence: ClassVar[str] = "due job could not be made ready"
    level: ClassVar[str] = "error"
    job_id: str
    error: str


class LoopFailed(Event, frozen=True):
    """A tick of a periodic loop failed; the loop continues."""

    sentence: ClassVar[str] = "tick failed"
    level: ClassVar[str] = "error"
    loop: str
    error: str


class JobsPruned(Event, frozen=True):
    """Finished jobs were deleted after their retention time."""

    sentence: ClassVar[str] = "old jobs pruned"
    jobs: int


class LoopSkipped(Event, frozen=True):
    """A tick came due while the previous one still ran."""

    sentence: ClassVar[str] = "still running, skipping tick"
    level: ClassVar[str] = "warning"
    loop: str
    running_for: float
    skipped: int  # total since the loop started


class LoopOverran(Event, frozen=True):
    """A tick exceeded its limit and was told to stop."""

    sentence: ClassVar[str] = "tick exceeded its limit"
    level: ClassVar[str] = "error"
    loop: str
    limit: float
    stopped: bool  # whether it stopped


class TicksLeft(Event, frozen=True):
    """A worker closed while ticks of its loops still ran after being told to stop."""

    sentence: ClassVar[str] = "worker closed with ticks that do not stop"
    level: ClassVar[str] = "error"
    worker: str
    loops: tuple[str, ...]


class LeadTaken(Event, frozen=True):
    """This process became leader: it does the work that only one process of the fleet should do."""

    sentence: ClassVar[str] = "leading"
    name: str
    holder: str
    term: int


class LeadLost(Event, frozen=True):
    """This process is no longer leader."""

    sentence: ClassVar[str] = "no longer leading"
    name: str
    holder: str
    term: int
    because: str


class OrphansReturning(Event, frozen=True):
    """Jobs of dead workers come back one by one, those with a checkpoint first."""

    sentence: ClassVar[str] = "✿ orphans return step by step"
    queue: str
    jobs: int
    with_checkpoint: int
    over: float  # seconds until the last one is back


class OrphansWaiting(Event, frozen=True):
    """More jobs of dead workers wait until the current round is back."""

    sentence: ClassVar[str] = "✿ more orphans wait for the next round"
    queue: str
    next_round_in: float


class BackupMade(Event, frozen=True):
    """A copy of the database was made and verified."""

    sentence: ClassVar[str] = "backup made"
    path: str
    bytes: int
    jobs: int
    seconds: float


class AlertRaised(Event, frozen=True):
    """A rule has raised an alert, or a channel of alerts does not work; the notice is on its way."""

    sentence: ClassVar[str] = "alert raised"
    level: ClassVar[str] = "warning"
    title: str
    severity: str
    rule: str
    count: int
