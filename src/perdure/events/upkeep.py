"""What the background loops do and find: rescues, promotion, pruning, leadership."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class WorkersBuried(Event, frozen=True):
    """Workers were found dead."""

    sentence: ClassVar[str] = "dead workers found"
    level: ClassVar[str] = "warning"
    workers: tuple[str, ...]
    because: str


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


class PromotionFailed(Event, frozen=True):
    """A due job could not be made ready; the others go on, and it is tried again a minute later."""

    sentence: ClassVar[str] = "due job could not be made ready"
    level: ClassVar[str] = "error"
    job_id: str
    error: str


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


class BackupMade(Event, frozen=True):
    """A copy of the database was made and found sound."""

    sentence: ClassVar[str] = "backup made"
    path: str
    bytes: int
    jobs: int
    seconds: float
