"""Outcomes of attempts, summed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from perdure.domain.operate.statistics import BUCKETS, EMPTY
from perdure.engines.shared.database.instants import maybe_moment, span, to_micros
from perdure.engines.shared.operate.statistic_columns import SLOTS
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.storage.operate.statistics import (
    HOUR,
    MINUTE,
    MINUTES_AT_ONCE,
    ROLL_UP_AFTER,
    SPANS,
    WRITERS_KEPT,
    Counted,
    Facet,
    Flush,
    Summed,
    Window,
)
from perdure.storage.records import Keep

_SPANS: Final = to_document([span(each) for each in SPANS])
_FACETS: Final = to_document(list(Facet))
_FIRST_BUCKET_COLUMN: Final = 7  # of a row that is added
WORDS: Final = SLOTS | {
    "bucket_values": ", ".join(
        f"row.value ->> {place}" for place in range(_FIRST_BUCKET_COLUMN, _FIRST_BUCKET_COLUMN + 2 * BUCKETS)
    )
}
"""What fills the slots of `statistics.sql`."""


class StatisticPart:
    """Statistics of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/views/statistics.sql", WORDS)

    async def add_statistics(self, flush: Flush) -> bool:
        """Add what a writer has counted, once."""
        rows = to_document([_row(one) for one in flush.counts])

        def work(transaction: Transaction) -> bool:
            noted = {"writer": clean(flush.writer), "flush": flush.number, "now": transaction.now}
            if not transaction.change(self._sql["note_flush"], noted):
                return False
            transaction.change(self._sql["add"], {"rows": rows})
            return True

        return await self._database.write(work)

    async def roll_up_statistics(self) -> int:
        """Add counts of minutes that are over to the sums; writes nothing if there are none."""
        if not await self._database.read(self._minutes):
            return 0
        return await self._database.write(self._roll_up)

    async def forget_statistics(self, keep: Keep, limit: int) -> int:
        """Delete sums that were kept long enough."""

        def work(transaction: Transaction) -> int:
            forgotten = 0
            for each in SPANS:
                kept = keep.statistics_by_hour if each >= HOUR else keep.statistics_by_minute
                if kept is not None:
                    old = {"span": span(each), "before": transaction.now - span(kept), "limit": limit - forgotten}
                    forgotten += transaction.change(self._sql["forget"], old | {"facets": _FACETS})
            transaction.change(self._sql["forget_writers"], {"before": transaction.now - span(WRITERS_KEPT)})
            return forgotten

        return await self._database.write(work)

    async def statistics(self, window: Window) -> list[Summed]:
        """The sums of a window."""
        params = {
            "since": to_micros(window.since),
            "until": to_micros(window.until),
            "span": span(window.span),
            "step": 0 if window.step is None else span(window.step),
            "facet": window.facet.value,
            "by_queue": int(window.by_queue),
            "by_kind": int(window.by_kind),
            "queue": window.queue,
            "kind": window.kind,
        }
        sql = self._sql["statistics" if window.times else "endings"]
        ((document,),) = await self._database.read(lambda transaction: transaction.run(sql, params))
        return [_summed(*row) for row in from_document(document)]

    async def statistic_totals(self) -> list[Summed]:
        """The sums over all time."""
        ((document,),) = await self._database.read(lambda transaction: transaction.run(self._sql["totals"]))
        return [_summed(*row) for row in from_document(document)]

    def _minutes(self, transaction: Transaction) -> list[int]:
        before = {"before": transaction.now - span(MINUTE) - span(ROLL_UP_AFTER), "limit": MINUTES_AT_ONCE}
        return [minute for (minute,) in transaction.run(self._sql["minutes"], before)]

    def _roll_up(self, transaction: Transaction) -> int:
        minutes = self._minutes(transaction)
        if minutes:
            last = {"last": minutes[-1]}
            transaction.change(self._sql["roll_up"], last | {"spans": _SPANS, "facets": _FACETS})
            transaction.change(self._sql["add_totals"], last)
            transaction.change(self._sql["take_out"], last)
        return len(minutes)


def _row(one: Counted) -> list[Any]:
    names = clean(one.queue), clean(one.kind), one.ending
    return [to_micros(one.minute), *names, one.jobs, one.waited, one.ran, *one.waits, *one.runs]


def _summed(
    at: int | None,
    queue: str | None,
    kind: str | None,
    endings: list[int],
    waited: float,
    ran: float,
    waits: Sequence[int] = EMPTY,
    runs: Sequence[int] = EMPTY,
) -> Summed:
    return Summed(maybe_moment(at), queue, kind, tuple(endings), waited, ran, tuple(waits), tuple(runs))
