"""Statistics for the desk: turns the sums of an engine into points in time with percentiles. No job is read."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, Literal

from msgspec.structs import replace

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.operate.statistics import (
    BOUNDS,
    BUCKETS,
    EMPTY,
    NO_TIMES,
    Ending,
    Group,
    Percentiles,
    Point,
    Statistics,
)
from perdure.errors import ArgumentError
from perdure.storage.checking import check_text, echo
from perdure.storage.operate.statistics import SPANS, StatisticStore, Summed, Window
from perdure.storage.port import Store

Grouping = Literal["queue", "kind"]
_Name = tuple[str | None, str | None]

_MINUTE: Final = timedelta(minutes=1)
_STEPS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 120, 360, 720, 1440))
_POINTS_LIMIT: Final = 180
_POINTS_PER_GROUP: Final = 60  # of each of many groups: as many as a table row can show
_STRETCHES_AT_LEAST: Final = 4
LONGEST_SPAN: Final = timedelta(days=366)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Final = Summed(None, None, None, (0,) * len(Ending), 0.0, 0.0, EMPTY, EMPTY)


async def read_statistics(
    store: Store,
    span: Duration,
    *,
    by: Grouping | None = None,
    queue: str | None = None,
    kind: str | None = None,
    points: bool = True,
    until: datetime | None = None,
    least: timedelta = _MINUTE,
) -> Statistics:
    """How attempts ended in the last `span`; see `Desk.statistics`.

    `until`: in the span that ended then. `least`: in steps of at least this length, which are kept for longer.
    """
    if by not in {None, "queue", "kind"}:
        raise ArgumentError("by", f'must be "queue", "kind" or None, got {echo(by)}')
    for field, name in (("queue", queue), ("kind", kind)):
        if name is not None:
            check_text(field, name)
    ended = await store.now() if until is None else until
    window = window_of(span, ended, most=_POINTS_LIMIT if by is None else _POINTS_PER_GROUP, least=least)
    step = window.step or _MINUTE
    sums = await _sums(store, window, by=by, queue=queue, kind=kind, points=points)
    groups = tuple(_group(name, found, window, points=points) for name, found in _by_name(sums, by))
    return Statistics(since=window.since, until=window.until, step=step, groups=groups)


async def read_trends(
    store: StatisticStore,
    span: Duration,
    now: datetime,
    *,
    by: Grouping,
    queue: str | None = None,
    kind: str | None = None,
) -> Statistics:
    """The same for a table of many groups: points hold only counts, and times are those of the whole span.

    Histograms are most of what a point costs, and a line in a table does not show them.
    """
    window = window_of(span, now, most=_POINTS_PER_GROUP)
    counts, whole = await asyncio.gather(
        _sums(store, window, by=by, queue=queue, kind=kind, times=False),
        _sums(store, window, by=by, queue=queue, kind=kind, points=False),
    )
    totals = dict(_by_name(whole, by))
    groups = tuple(
        replace(_group(name, found, window, points=True), total=_point(window.since, _total(totals.get(name, found))))
        for name, found in _by_name(counts, by)
    )
    return Statistics(since=window.since, until=window.until, step=window.step or _MINUTE, groups=groups)


def empty_group(among: Statistics, *, queue: str | None = None, kind: str | None = None) -> Group:
    """The group of a queue or kind without counts."""
    return _group((queue, kind), (), _window(among), points=True)


async def pairs_seen(store: StatisticStore, among: Statistics) -> list[tuple[str, str]]:
    """The pairs of queue and kind that were counted in these statistics, or shortly before.

    Long spans are read, because they are few and one is enough for a name.
    """
    span = max((kept for kept in SPANS if kept * _STRETCHES_AT_LEAST <= among.until - among.since), default=_MINUTE)
    since = _EPOCH + (among.since - _EPOCH) // span * span
    sums = await store.statistics(
        Window(since=since, until=among.until, span=span, by_queue=True, by_kind=True, times=False)
    )
    return [(one.queue, one.kind) for one in sums if one.queue is not None and one.kind is not None]


def window_of(span: Duration, now: datetime, most: int = _POINTS_LIMIT, least: timedelta = _MINUTE) -> Window:
    """The window of the last `span`, with about `most` points; the last one is still incomplete."""
    length = parse_duration("span", span)
    if not _MINUTE <= length <= LONGEST_SPAN:
        raise ArgumentError("span", f"must be from 1m to {LONGEST_SPAN.days}d, got {echo(span)}")
    step = next((step for step in _STEPS if step >= least and length / step <= most), _STEPS[-1])
    until = _EPOCH + ((now - _EPOCH) // step + 1) * step
    return Window(since=until - math.ceil(length / step) * step, until=until, step=step, span=_span_of(step))


def percentiles(histogram: Sequence[int], total: float) -> Percentiles:
    """A distribution from its histogram and the sum of its times; a percentile inside a bucket is interpolated."""
    if not any(histogram):
        return NO_TIMES
    reached = list(accumulate(histogram))
    count = reached[-1]
    return Percentiles(
        count,
        mean=round(total / count, 6),
        p50=_percentile(reached, 0.5 * count),
        p95=_percentile(reached, 0.95 * count),
        p99=_percentile(reached, 0.99 * count),
    )


def _window(among: Statistics) -> Window:
    return Window(since=among.since, until=among.until, step=among.step, span=_span_of(among.step))


def _span_of(step: timedelta) -> timedelta:
    """The longest stored span that divides a step."""
    return max(kept for kept in SPANS if not step % kept)


def _percentile(reached: list[int], rank: float) -> float:
    bucket = bisect_left(reached, rank)
    if bucket >= BUCKETS - 1:
        return BOUNDS[-1]
    below, lower = (reached[bucket - 1], BOUNDS[bucket - 1]) if bucket else (0, 0.0)
    share = (rank - below) / (reached[bucket] - below)
    return round(lower + (BOUNDS[bucket] - lower) * share, 6)


async def _sums(
    store: StatisticStore,
    window: Window,
    *,
    by: Grouping | None,
    queue: str | None = None,
    kind: str | None = None,
    points: bool = True,
    times: bool = True,
) -> list[Summed]:
    return await store.statistics(
        Window(
            since=window.since,
            until=window.until,
            span=window.span,
            step=window.step if points else None,
            by_queue=by == "queue",
            by_kind=by == "kind",
            queue=queue,
            kind=kind,
            times=times,
        )
    )


def _by_name(sums: Iterable[Summed], by: Grouping | None) -> list[tuple[_Name, list[Summed]]]:
    names: dict[_Name, list[Summed]] = {} if by else {(None, None): []}
    for one in sums:
        names.setdefault((one.queue, one.kind), []).append(one)
    return sorted(names.items(), key=lambda item: [word or "" for word in item[0]])


def _group(name: _Name, sums: Sequence[Summed], window: Window, *, points: bool) -> Group:
    queue, kind = name
    total = _point(window.since, _total(sums))
    if not points or window.step is None:
        return Group(queue=queue, kind=kind, total=total)
    found = {one.at: one for one in sums}
    moments = (window.since + place * window.step for place in range((window.until - window.since) // window.step))
    return Group(
        queue=queue,
        kind=kind,
        total=total,
        points=tuple(_point(at, found[at]) if at in found else Point(at=at) for at in moments),
    )


def _total(sums: Sequence[Summed]) -> Summed:
    if not sums:
        return _NOTHING
    return Summed(
        None,
        sums[0].queue,
        sums[0].kind,
        _added(one.endings for one in sums),
        sum(one.waited for one in sums),
        sum(one.ran for one in sums),
        _added(one.waits for one in sums),
        _added(one.runs for one in sums),
    )


def _added(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def _point(at: datetime, one: Summed) -> Point:
    succeeded, retried, died, cancelled, crashed, held = one.endings
    return Point(
        at=at,
        succeeded=succeeded,
        retried=retried,
        died=died,
        cancelled=cancelled,
        crashed=crashed,
        held=held,
        wait=percentiles(one.waits, one.waited),
        run=percentiles(one.runs, one.ran),
    )
