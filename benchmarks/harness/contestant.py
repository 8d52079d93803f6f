"""What a job system has to offer so that the harness can measure it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from benchmarks.harness.ledger import WorkerLedger


class Engine(StrEnum):
    """Where a contestant keeps its jobs."""

    POSTGRES = "PostgreSQL"
    SQLITE = "SQLite"
    REDIS = "Redis"


class Purpose(StrEnum):
    """What a worker is started for, where the best settings differ."""

    DRAIN = "drain"
    PICKUP = "pickup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much work a contestant gets: enough for some seconds, never without end."""

    drain_jobs: int
    single_jobs: int = 2_000
    pickup_jobs: int = 500
    pickup_rate: int = 50
    two_workers: bool = True
    patience: float = 120.0

    def scaled(self, factor: float) -> Plan:
        """Return the same plan with `factor` times as many jobs."""
        return Plan(
            drain_jobs=max(1, round(self.drain_jobs * factor)),
            single_jobs=max(1, round(self.single_jobs * factor)),
            pickup_jobs=max(1, round(self.pickup_jobs * factor)),
            pickup_rate=self.pickup_rate,
            two_workers=self.two_workers,
            patience=self.patience,
        )


class Producer(Protocol):
    """An open connection that enqueues no-op jobs carrying an index and a time."""

    async def enqueue(self, index: int, sent_ns: int) -> None:
        """Enqueue one job and return once it is durable."""

    async def enqueue_many(self, count: int) -> None:
        """Enqueue `count` untimed jobs in the fastest documented way."""


class Contestant(Protocol):
    """A job system in its best documented configuration."""

    name: ClassVar[str]
    distribution: ClassVar[str]
    engine: ClassVar[Engine]
    plan: ClassVar[Plan]
    settings: ClassVar[Mapping[str, str]]
    uvloop: ClassVar[bool]

    async def prepare(self, url: str) -> None:
        """Create the tables in the empty database at `url`."""

    def producer(self, url: str) -> AbstractAsyncContextManager[Producer]:
        """Open a producer; it stays open for many calls."""

    async def unfinished(self, url: str) -> int:
        """How many jobs the database does not yet show as acknowledged."""

    async def work(self, url: str, ledger: WorkerLedger, purpose: Purpose) -> None:
        """Set a worker up, wait at the ledger's gate, then run jobs until stopped.

        Every handler calls `ledger.start` with what its job carries and returns.
        """
