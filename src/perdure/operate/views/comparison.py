"""Compares the last span of time with an earlier one of the same length. No job is read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.operate.statistics import Statistics
from perdure.errors import ArgumentError
from perdure.operate.views.statistics import LONGEST_SPAN, Grouping, read_statistics
from perdure.storage.checking import echo
from perdure.storage.port import Store

_BY_MINUTE_KEPT: Final = timedelta(days=2)  # unless the app says otherwise
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_SHORTEST_BY_HOUR: Final = timedelta(hours=6)  # so that the current, incomplete hour weighs little


class Comparison(Struct, frozen=True):
    """Statistics of the last span, and of one before it."""

    now: Statistics
    before: Statistics


async def compare(
    store: Store,
    span: Duration,
    ago: Duration | None,
    *,
    by: Grouping | None = None,
    queue: str | None = None,
    kind: str | None = None,
) -> Comparison:
    """The last `span`, and the span of that length that ended `ago` earlier; see `Desk.compare`."""
    length = parse_duration("span", span)
    back = length if ago is None else parse_duration("ago", ago)
    if not length <= back <= LONGEST_SPAN:
        raise ArgumentError("ago", f"must be from span ({echo(span)}) to {LONGEST_SPAN.days}d, got {echo(ago)}")
    is_old = back + length > _BY_MINUTE_KEPT
    if is_old and length < _SHORTEST_BY_HOUR:
        raise ArgumentError(
            "span",
            f"must be at least 6h to look {echo(ago or span)} back, got {echo(span)}: statistics by the minute are "
            f"kept for {_BY_MINUTE_KEPT.days} days",
        )
    now = await store.now()
    step = _HOUR if is_old else _MINUTE

    async def read(until: datetime) -> Statistics:
        return await read_statistics(
            store, length, by=by, queue=queue, kind=kind, points=False, until=until, least=step
        )

    return Comparison(await read(now), await read(now - back))
