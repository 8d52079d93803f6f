"""Outcomes of attempts, summed up."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from perdure.clock import Clock
from perdure.domain.operate.statistics import BUCKETS, EMPTY
from perdure.engines.postgres.database.arrays import storable, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text, seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.shared.operate.statistic_columns import SLOTS
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

_SPANS: Final = text_array([seconds_text(each) for each in SPANS])
_FACETS: Final = text_array(list(Facet))
_NUMBERS: Final = msgspec.json.Decoder(tuple[int, ...])
_NO_TIMES: Final = ",".join(map(str, EMPTY))
WORDS: Final = SLOTS | {
    "bucket_values": ", ".join(f"row.{column}[{n}]" for column in ("waits", "runs") for n in range(1, BUCKETS + 1))
}
"""What fills the slots of `statistics.sql`."""


class StatisticPart:
    """Adds counts through one pool, so that they wait for no reader, and answers through the other."""

    def __init__(self, naming: Naming, pool: Pool, desk: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/views/statistics.sql", WORDS)
        self._pool = pool
        self._desk = desk
        self._clock = clock

    async def add_statistics(self, flush: Flush) -> bool:
        """Add what a writer has counted, once."""
        params: Params = {
            "writer": storable(flush.writer),
            "flush": flush.number,
            "rows": msgspec.json.encode([_row(one) for one in flush.counts]).decode(),
            "now": self._now(),
        }
        [[added]] = await self._pool.rows(self._statements["add"], params)
        return bool(added)

    async def roll_up_statistics(self) -> int:
        """Add counts of minutes that are over to the sums."""
        params: Params = {
            "now": self._now(),
            "over": MINUTE + ROLL_UP_AFTER,
            "spans": _SPANS,
            "facets": _FACETS,
            "limit": MINUTES_AT_ONCE,
        }
        [[minutes]] = await self._desk.rows(self._statements["roll_up"], params)
        return int(minutes)

    async def forget_statistics(self, keep: Keep, limit: int) -> int:
        """Delete sums that were kept long enough."""

        async def work(wire: Wire) -> int:
            forgotten = 0
            for each in SPANS:
                kept = keep.statistics_by_hour if each >= HOUR else keep.statistics_by_minute
                if kept is not None:
                    old: Params = {"span": each, "kept": kept, "limit": limit - forgotten, "facets": _FACETS}
                    forgotten += len(await wire.fetch(self._statements["forget"], {**old, "now": self._now()}))
            await wire.fetch(self._statements["forget_writers"], {"kept": WRITERS_KEPT, "now": self._now()})
            return forgotten

        return await self._desk.run(work)

    async def statistics(self, window: Window) -> list[Summed]:
        """The sums of a window."""
        params: Params = {
            "since": window.since,
            "until": window.until,
            "span": window.span,
            "step": window.step,
            "facet": window.facet.value,
            "by_queue": window.by_queue,
            "by_kind": window.by_kind,
            "queue": window.queue,
            "kind": window.kind,
        }
        sql = self._statements["statistics" if window.times else "endings"]
        return [_summed(*row) for row in await self._desk.rows(sql, params)]

    async def statistic_totals(self) -> list[Summed]:
        """The sums over all time."""
        return [_summed(*row) for row in await self._desk.rows(self._statements["totals"], {})]

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _row(one: Counted) -> dict[str, Any]:
    return {
        "at": moment_text(one.minute),
        "queue": storable(one.queue),
        "kind": storable(one.kind),
        "ending": one.ending,
        "jobs": one.jobs,
        "waited": one.waited,
        "ran": one.ran,
        "waits": one.waits,
        "runs": one.runs,
    }


def _summed(
    at: datetime | None,
    queue: str | None,
    kind: str | None,
    endings: str,
    waited: float,
    ran: float,
    waits: str = _NO_TIMES,
    runs: str = _NO_TIMES,
) -> Summed:
    return Summed(at, queue, kind, _numbers(endings), waited, ran, _numbers(waits), _numbers(runs))


def _numbers(joined: str) -> tuple[int, ...]:
    return _NUMBERS.decode(f"[{joined}]")
