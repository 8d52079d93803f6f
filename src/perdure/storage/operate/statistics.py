"""Counts of how attempts ended: workers count, engines sum up.

Workers hand in flushes of counts by minute. A roll-up adds what is complete to stretches of a minute, a quarter of an
hour, an hour and six hours, for all jobs, each queue, each kind, and both together: so a page reads few rows, however
many workers, queues and kinds there are. What is not rolled up yet is read beside them. It also adds to totals over all
time, which outlive the sums of stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.operate.statistics import EMPTY, Ending
from perdure.storage.records import Keep

MINUTE: Final = timedelta(minutes=1)
QUARTER: Final = timedelta(minutes=15)
HOUR: Final = timedelta(hours=1)
QUARTER_DAY: Final = timedelta(hours=6)
SPANS: Final = (MINUTE, QUARTER, HOUR, QUARTER_DAY)
"""The stretches that are kept, each a multiple of the one before."""

ROLL_UP_AFTER: Final = timedelta(seconds=15)
"""So long after the end of a minute its counts are moved; one that comes later is added later."""
MINUTES_AT_ONCE: Final = 10
WRITERS_KEPT: Final = timedelta(days=2)


class Facet(StrEnum):
    """What a sum tells apart."""

    ALL = "all"
    QUEUE = "queue"
    KIND = "kind"
    BOTH = "both"


class Counted(Struct, frozen=True, kw_only=True):
    """Attempts of one minute, queue and kind that ended alike.

    `waited` and `ran` are sums in seconds over those whose times are known; `waits` and `runs` are their histograms.
    """

    minute: datetime
    queue: str
    kind: str
    ending: Ending
    jobs: int
    waited: float = 0.0
    ran: float = 0.0
    waits: Sequence[int] = EMPTY
    runs: Sequence[int] = EMPTY


class Flush(Struct, frozen=True):
    """What one writer has counted since its last flush. Numbers of one writer rise."""

    writer: str
    number: int
    counts: tuple[Counted, ...]


class Window(Struct, frozen=True, kw_only=True):
    """Which sums are asked for: from `since` on and before `until`, both at the beginning of a `span`.

    `step` None: one sum for the whole window. `queue` and `kind` choose, `by_queue` and `by_kind` tell apart. Without
    `times` the histograms are left out, which are most of the data.
    """

    since: datetime
    until: datetime
    span: timedelta = MINUTE
    step: timedelta | None = None
    by_queue: bool = False
    by_kind: bool = False
    queue: str | None = None
    kind: str | None = None
    times: bool = True

    @property
    def facet(self) -> Facet:
        """The sums that hold the answer."""
        if self.by_queue or self.queue is not None:
            return Facet.BOTH if self.by_kind or self.kind is not None else Facet.QUEUE
        return Facet.KIND if self.by_kind or self.kind is not None else Facet.ALL


class Summed(Struct, frozen=True):
    """The sum over one stretch of a window; `at` None: over all of it. Endings are in the order of `Ending`."""

    at: datetime | None
    queue: str | None
    kind: str | None
    endings: tuple[int, ...]
    waited: float
    ran: float
    waits: tuple[int, ...]
    runs: tuple[int, ...]


class StatisticStore(Protocol):
    """Counts of attempts. No other behaviour depends on them."""

    async def add_statistics(self, flush: Flush) -> bool:
        """Add what a writer has counted, once: a flush of a number that was added already changes nothing (False)."""

    async def roll_up_statistics(self) -> int:
        """Add counts of minutes that are over to the sums of each span and facet; how many minutes, 10 at most.

        Each count is added once, no matter who calls this and how often. Counts that come later for the same minute are
        added by the next call.
        """

    async def forget_statistics(self, keep: Keep, limit: int) -> int:
        """Delete at most `limit` sums that were kept long enough, and writers not heard of for two days; how many.

        Sums of an hour or more are kept for `keep.statistics_by_hour`, those of less for `keep.statistics_by_minute`.
        """

    async def statistics(self, window: Window) -> list[Summed]:
        """The sums of a window, oldest first, then by queue and kind; those that hold nothing are left out."""

    async def statistic_totals(self) -> list[Summed]:
        """The sums over all time by queue and kind, in this order; they are never deleted, so none ever falls."""
