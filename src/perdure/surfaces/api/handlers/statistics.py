"""Queues, kinds, and outcomes of attempts over time."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.operate.statistics import Statistics
from perdure.errors import NotFoundError
from perdure.operate.views.kind_views import KindView
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.api.route import Call, Given


class SpanQuery(Given, frozen=True, kw_only=True):
    """The span that statistics cover, such as "1h", "1d" or "7d"."""

    span: str = "1h"


class StatisticsQuery(Given, frozen=True, kw_only=True):
    """The span, grouping and filters of statistics; with a time series unless `points` is false."""

    span: str = "1h"
    by: Literal["queue", "kind"] | None = None
    queue: str | None = None
    kind: str | None = None
    points: bool = True


class QueueList(Struct, frozen=True):
    """All queues, by name."""

    queues: tuple[QueueView, ...]


class KindList(Struct, frozen=True):
    """All recently seen kinds, by name."""

    kinds: tuple[KindView, ...]


async def list_queues(call: Call[SpanQuery, None]) -> QueueList:
    """List queues with their waiting and running jobs, their workers, and statistics."""
    return QueueList(tuple(await call.desk.queues(call.query.span)))


async def show_queue(call: Call[SpanQuery, None]) -> QueueView:
    """Show a queue."""
    name = call.path["name"]
    for queue in await call.desk.queues(call.query.span):
        if queue.name == name:
            return queue
    raise NotFoundError(f"there is no queue {name!r} that has jobs, workers, pauses or statistics")


async def list_kinds(call: Call[SpanQuery, None]) -> KindList:
    """List kinds with their statistics.

    Points count attempts only; wait and run times are for the whole span.
    """
    return KindList(tuple(await call.desk.kinds(call.query.span)))


async def show_kind(call: Call[SpanQuery, None]) -> KindView:
    """Show a kind.

    Its points include wait and run times.
    """
    name = call.path["name"]
    for kind in await call.desk.kinds(call.query.span):
        if kind.name == name:
            [group] = (await call.desk.statistics(call.query.span, kind=name)).groups
            return replace(kind, statistics=replace(group, kind=name))
    raise NotFoundError(f"there is no kind {name!r} with recent jobs")


async def show_statistics(call: Call[StatisticsQuery, None]) -> Statistics:
    """Show the outcomes of attempts, how long jobs waited, and how long they ran.

    Points of the time series are a minute apart for up to 3 hours, 15 minutes for a day, an hour for a week. The query
    reads no jobs.
    """
    query = call.query
    return await call.desk.statistics(query.span, by=query.by, queue=query.queue, kind=query.kind, points=query.points)
