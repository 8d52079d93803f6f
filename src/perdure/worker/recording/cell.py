"""The counts of one queue, kind and ending in one minute."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from math import ceil
from typing import Final, TypeVar

from msgspec import Struct, field

from perdure.domain.operate.statistics import BOUNDS, BUCKETS
from perdure.worker.recording.totals import PairTotal

# Waits are sorted in as they are: a conversion to seconds would take longer. They are whole microseconds, so the next
# whole microsecond is the same bound.
_BOUNDS_OF_WAITS: Final = tuple(timedelta(microseconds=ceil(bound * 1e6)) for bound in BOUNDS)
_NO_TIME: Final = timedelta(0)
_Time = TypeVar("_Time", float, timedelta)


class Cell(Struct):
    """The counts of one queue, kind and ending in one minute. Times are added to the histograms later.

    `jobs` counts those that are sorted in, and those without a run time.
    """

    jobs: int = 0
    waited: float = 0.0
    ran: float = 0.0
    waits: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    runs: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    new_waits: list[timedelta] = []
    new_runs: list[float] = []

    def fold(self) -> None:
        """Add new times to the histograms."""
        waits, runs = self.new_waits, self.new_runs
        self.jobs += len(runs)
        self.waited += sum(waits, _NO_TIME).total_seconds()
        self.ran += sum(runs)
        _sort_in(waits, self.waits, _BOUNDS_OF_WAITS)
        _sort_in(runs, self.runs, BOUNDS)
        waits.clear()
        runs.clear()

    def add(self, more: Cell) -> None:
        """Add the counts of another cell, whose times are all in its histograms."""
        self.jobs += more.jobs
        more.add_times_to(self)

    def add_times_to(self, kept: Cell | PairTotal) -> None:
        """Add the histograms, and the sums of their times."""
        kept.waited += self.waited
        kept.ran += self.ran
        kept.waits = _added(kept.waits, self.waits)
        kept.runs = _added(kept.runs, self.runs)


def _sort_in(times: list[_Time], histogram: list[int], bounds: Sequence[_Time]) -> None:
    """Add times to a histogram."""
    times.sort()
    before = 0
    for bucket, bound in enumerate(bounds):
        below = bisect_left(times, bound, before)
        histogram[bucket] += below - before
        before = below
    histogram[-1] += len(times) - before


def _added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [left + right for left, right in zip(one, other, strict=True)]
