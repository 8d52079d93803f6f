"""What happens between a worker and its database."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class ClockJumped(Event, frozen=True):
    """The database's clock jumped; for one lease no worker is declared dead for its silence."""

    sentence: ClassVar[str] = "the database's clock jumped"
    level: ClassVar[str] = "warning"
    seconds: float


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


class StoreSlow(Event, frozen=True):
    """A call to the store takes too long; `stack` is what it waits for."""

    sentence: ClassVar[str] = "database call takes long"
    level: ClassVar[str] = "warning"
    what: str
    seconds: float
    stack: str
