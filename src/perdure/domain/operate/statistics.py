"""How attempts end, counted: the endings, the buckets of wait and run times, and what the desk shows of them.

A histogram has 26 buckets. Their 25 bounds go from 1 ms to 6 minutes in equal geometric steps, each 1.7 times the one
before: the first bucket holds what took less than 1 ms, the last what took 6 minutes or more. So a percentile read from
a histogram is never off by more than its bucket is wide, whether it is 2 ms or 2 minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

_SHORTEST_SECONDS: Final = 0.001
_LONGEST_SECONDS: Final = 360.0
_BUCKETS_BETWEEN: Final = 24

BOUNDS: Final[tuple[float, ...]] = (
    *(
        _SHORTEST_SECONDS * (_LONGEST_SECONDS / _SHORTEST_SECONDS) ** (step / _BUCKETS_BETWEEN)
        for step in range(_BUCKETS_BETWEEN)
    ),
    _LONGEST_SECONDS,
)
"""The bounds between buckets, in seconds. A time that equals a bound belongs to the bucket above it."""
BUCKETS: Final = len(BOUNDS) + 1
EMPTY: Final = (0,) * BUCKETS

OTHER: Final = "other"
"""The kind under which a worker counts further kinds beyond its limit of queues and kinds."""


class Ending(StrEnum):
    """How an attempt ended, as statistics count it."""

    SUCCEEDED = "succeeded"
    RETRIED = "retried"  # failed, and another attempt follows
    DIED = "died"  # the job went to the dead letters, by a failure or by its last crash
    CANCELLED = "cancelled"
    CRASHED = "crashed"  # its process is gone, and another attempt follows
    HELD = "held"  # put off at no cost: by a gate, a pause or a missing handler, or parked by its own handler


class Percentiles(Struct, frozen=True):
    """A distribution of times, in seconds. `count` is how many times are known; if none, the rest is None.

    Percentiles are read from a histogram, with interpolation inside the bucket. One above 6 minutes is given as 6
    minutes: it is at least that.
    """

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


NO_TIMES: Final = Percentiles()


class Point(Struct, frozen=True, kw_only=True):
    """How attempts ended in one step of time, which begins at `at`.

    `wait` is the time from when a job was due to its start, `run` that from its start to its end.
    """

    at: datetime
    succeeded: int = 0
    retried: int = 0
    died: int = 0
    cancelled: int = 0
    crashed: int = 0
    held: int = 0
    wait: Percentiles = NO_TIMES
    run: Percentiles = NO_TIMES

    @property
    def finished(self) -> int:
        """Jobs that have reached a final state."""
        return self.succeeded + self.died + self.cancelled

    @property
    def failed(self) -> int:
        """Attempts that have failed, whether another followed or not."""
        return self.retried + self.died + self.crashed

    @property
    def attempts(self) -> int:
        """Attempts that were made; held-back jobs do not count."""
        return self.succeeded + self.cancelled + self.failed

    @property
    def failure_share(self) -> float | None:
        """The share of failed attempts among those that succeeded or failed, from 0 to 1; None: there were none."""
        judged = self.succeeded + self.failed
        return self.failed / judged if judged else None


class Group(Struct, frozen=True, kw_only=True):
    """The points of one queue or kind, oldest first, without gaps; `total` is the whole span in one point."""

    queue: str | None = None
    kind: str | None = None
    points: tuple[Point, ...] = ()
    total: Point


class Statistics(Struct, frozen=True, kw_only=True):
    """How attempts ended from `since` to `until`, in steps of `step`, by the database's clock."""

    since: datetime
    until: datetime
    step: timedelta
    groups: tuple[Group, ...]


def bucket_of(seconds: float) -> int:
    """The bucket of a time; a negative time, from a clock that was set back, belongs to the first."""
    return bisect_right(BOUNDS, seconds)
