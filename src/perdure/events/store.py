"""Events between a worker and its database."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class ClockJumped(Event, frozen=True):
    """The database's clock jumped; for one lease, no worker is declared dead for a missing heartbeat."""

    sentence: ClassVar[str] = "the database's clock jumped"
    level: ClassVar[str] = "warning"
    seconds: float


class StaleWrites(Event, frozen=True):
    """Attempts that had lost their lease sent acknowledgements; these changed nothing."""

    sentence: ClassVar[str] = "stale acknowledgements ignored"
    level: ClassVar[str] = "warning"
    job_ids: tuple[str, ...]


class RecordRefused(Event, frozen=True):
    """The database refuses the content of an acknowledgement; the job goes to the dead letters with the cause."""

    sentence: ClassVar[str] = "acknowledgement refused by the database"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    error: str


class LeasesReturned(Event, frozen=True):
    """A worker held jobs that it does not run, because the database went back in time; they are ready again."""

    sentence: ClassVar[str] = "released leases that this worker does not run; no attempt was used"
    level: ClassVar[str] = "warning"
    worker: str
    job_ids: tuple[str, ...]


class RecordsLeft(Event, frozen=True):
    """A worker closed before it could record the outcome of these attempts; their jobs will run again."""

    sentence: ClassVar[str] = "worker closed with attempts that could not be recorded"
    level: ClassVar[str] = "error"
    worker: str
    attempts: int


class StatisticsDropped(Event, frozen=True):
    """The database was away for so long that the oldest statistics of this worker were dropped."""

    sentence: ClassVar[str] = "statistics dropped, the database was away for too long"
    level: ClassVar[str] = "warning"
    counts: int


class StoreTrouble(Event, frozen=True):
    """A database call of a background task failed; the task retries."""

    sentence: ClassVar[str] = "database trouble, retrying"
    level: ClassVar[str] = "warning"
    what: str
    error: str
    wait: float


class StoreRecovered(Event, frozen=True):
    """The database answers again."""

    sentence: ClassVar[str] = "database answers again"
    what: str
    failures: int


class StoreSlow(Event, frozen=True):
    """A call to the store takes too long; `stack` shows where it waits."""

    sentence: ClassVar[str] = "database call is slow"
    level: ClassVar[str] = "warning"
    what: str
    seconds: float
    stack: str
