"""Counts of a worker since its start, for metrics and snapshots; unlike statistics, they are never cleared.

They are not counted separately: a few times a minute `AttemptCounts` adds its counts to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from perdure.domain.jobs.states import Reason
from perdure.domain.operate.statistics import BUCKETS, Ending

Pair = tuple[str, str]
"""A queue and a kind."""


class PairTotal(Struct):
    """Attempts of one queue and kind: how they ended, and the sums and histograms of their times in seconds."""

    endings: dict[Ending, int] = {}
    waited: float = 0.0
    ran: float = 0.0
    waits: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    runs: list[int] = field(default_factory=lambda: [0] * BUCKETS)


class AttemptTotals(Struct):
    """The totals by queue and kind; `holds` also by the reason for which jobs were put off at no cost."""

    pairs: dict[Pair, PairTotal] = {}
    holds: dict[tuple[str, str, Reason], int] = {}

    def hold(self, pair: Pair, reason: Reason) -> None:
        """Count a job that was held."""
        key = *pair, reason
        self.holds[key] = self.holds.get(key, 0) + 1

    def add(self, pair: Pair, ending: Ending, jobs: int) -> PairTotal:
        """Count attempts that ended alike; returns where their times belong."""
        total = self.pairs.get(pair)
        if total is None:
            total = self.pairs[pair] = PairTotal()
        total.endings[ending] = total.endings.get(ending, 0) + jobs
        return total


class LoopTally(Struct, frozen=True):
    """How often a periodic loop ran, came due while it still ran, and failed."""

    name: str
    ticks: int
    skipped: int
    failed: int


class WorkerTally(Struct, frozen=True, kw_only=True):
    """The counts of a worker and its current load; `attempts` None: its statistics are switched off."""

    name: str
    attempts: AttemptTotals | None
    stale: int
    running: int
    concurrency: int
    backlog: int
    loops: Sequence[LoopTally]
