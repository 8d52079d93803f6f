"""How a worker works; every number is checked before it starts."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from perdure.domain.job import DEFAULT_QUEUE
from perdure.errors import SettingsError
from perdure.policy.decide import MissingHandler
from perdure.storage.records import Keep


class Queue(Struct, frozen=True):
    """How a worker serves one queue: its share of free capacity, and how many of its jobs may run here at once."""

    name: str
    weight: int = 1
    concurrency: int | None = None


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """A worker's settings, with the defaults that suit most."""

    queues: tuple[Queue, ...] = (Queue(DEFAULT_QUEUE),)
    name: str | None = None
    concurrency: int = 100
    threads: int = 16
    isolated: int = 16  # attempts in processes of their own at once
    claim_batch: int = 500
    ack_batch: int = 1_000
    unacknowledged: int = 10_000  # finished but not yet recorded jobs, beyond which no new ones are taken
    heartbeat: timedelta = timedelta(seconds=10)
    lease: timedelta = timedelta(seconds=30)
    sweep: timedelta = timedelta(seconds=5)
    poll: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=5)  # between asking a handler to stop and giving its attempt up
    stop_timeout: timedelta = timedelta(seconds=20)
    missing_handler: MissingHandler = MissingHandler.DEFER
    unknown_kind_for: timedelta = timedelta(days=1)
    keep: Keep = Keep()
    recycle_after_jobs: int | None = None
    recycle_above_mb: int | None = None

    @property
    def recycles(self) -> bool:
        """Whether the process is to be replaced by a fresh one from time to time, which takes a supervisor."""
        return self.recycle_after_jobs is not None or self.recycle_above_mb is not None

    def __post_init__(self) -> None:
        for field in (
            "concurrency",
            "threads",
            "isolated",
            "claim_batch",
            "ack_batch",
            "unacknowledged",
            "recycle_after_jobs",
            "recycle_above_mb",
        ):
            number = getattr(self, field)
            if number is not None and number < 1:
                raise SettingsError(f"worker.{field}", f"must be at least 1, got {number}")
        for field in ("heartbeat", "sweep", "poll", "lease"):
            if getattr(self, field) <= timedelta(0):
                raise SettingsError(f"worker.{field}", f"must be longer than 0, got {getattr(self, field)}")
        if self.lease < 2 * self.heartbeat:
            raise SettingsError(
                "worker.lease", f"must be at least twice worker.heartbeat ({self.heartbeat}), got {self.lease}"
            )
        _check_queues(self.queues)


def _check_queues(queues: tuple[Queue, ...]) -> None:
    if not queues:
        raise SettingsError("worker.queues", "must name at least one queue")
    names = [queue.name for queue in queues]
    if len(set(names)) < len(names):
        raise SettingsError("worker.queues", f"names a queue twice: {', '.join(names)}")
    for queue in queues:
        if queue.weight < 1:
            raise SettingsError(f"weight of queue {queue.name}", f"must be at least 1, got {queue.weight}")
        if queue.concurrency is not None and queue.concurrency < 1:
            raise SettingsError(f"concurrency of queue {queue.name}", f"must be at least 1, got {queue.concurrency}")


def parse_queues(text: str) -> tuple[Queue, ...]:
    """Read `mail:3,reports@2` as queues: weight after a colon, concurrency after an at sign."""
    queues = []
    for piece in (part.strip() for part in text.split(",")):
        head, _, concurrency = piece.partition("@")
        name, _, weight = head.partition(":")
        if not name:
            raise SettingsError("queues", f"has an empty name in {text!r}; write for example mail:3,reports@2")
        try:
            queues.append(Queue(name, int(weight or 1), int(concurrency) if concurrency else None))
        except ValueError:
            raise SettingsError("queues", f"has no number where one belongs in {piece!r}") from None
    return tuple(queues)
