"""Counts of how attempts ended: workers count, engines sum up.

Workers write flushes of counts by minute. A roll-up adds complete minutes to spans of a minute, a quarter of an hour,
an hour and six hours, for all jobs, each queue, each kind, and each pair of both: so a page reads few rows, however
many workers, queues and kinds there are. Counts that are not rolled up yet are read beside them. It also adds to totals
over all time, which outlive the sums of stretches.
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
"""The spans of stored sums, each a multiple of the one before."""

ROLL_UP_AFTER: Final = timedelta(seconds=15)
"""The counts of a minute are rolled up this long after its end; later ones are added by a later roll-up."""
MINUTES_AT_ONCE: Final = 10
WRITERS_KEPT: Final = timedelta(days=2)


class Facet(StrEnum):
    """By what a sum is grouped."""

    ALL = "all"
    QUEUE = "queue"
    KIND = "kind"
    BOTH = "both"


class Counted(Struct, frozen=True, kw_only=True):
    """Attempts of one minute, queue and kind with the same ending.

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
    """The counts of one writer since its last flush. The numbers of a writer rise."""

    writer: str
    number: int
    counts: tuple[Counted, ...]


class Window(Struct, frozen=True, kw_only=True):
    """The requested sums: from `since` on and before `until`, both at the beginning of a `span`.

    `step` None: one sum for the whole window. `queue` and `kind` filter, `by_queue` and `by_kind` group. Without
    `times` the histograms, which are most of the data, are left out.
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
        """Add a flush once: one whose number was added already changes nothing (False)."""

    async def roll_up_statistics(self) -> int:
        """Add complete minutes, at most 10, to the sums of each span and facet; returns their number.

        Each count is added once, no matter who calls this and how often. Counts that come later for the same minute are
        added by the next call.
        """

    async def forget_statistics(self, keep: Keep, limit: int) -> int:
        """Delete at most `limit` expired sums, and writers silent for two days; returns their number.

        Sums of an hour or more are kept for `keep.statistics_by_hour`, those of less for `keep.statistics_by_minute`.
        """

    async def statistics(self, window: Window) -> list[Summed]:
        """The sums of a window, oldest first, then by queue and kind; empty ones are left out."""

    async def statistic_totals(self) -> list[Summed]:
        """The sums over all time by queue and kind, in this order; they are never deleted, so none ever falls."""
