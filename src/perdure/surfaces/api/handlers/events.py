"""The event log: pages, a stream, and its switch."""

from __future__ import annotations

from msgspec import Struct
from starlette.responses import StreamingResponse

from perdure.domain.operate.event_log import EventFilter
from perdure.operate.commands.feed import EventPage, FeedState, event_filter
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Limit
from perdure.surfaces.server.event_stream import EventStream
from perdure.surfaces.server.requests import access_of

_LAST_ID = "last-event-id"


class Wanted(Given, frozen=True, kw_only=True):
    """Which events: by type, queue, kind, or one of several tags; without any, all."""

    types: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()


class EventsQuery(Wanted, frozen=True, kw_only=True):
    """`after`: the cursor of an event; omitted: from the oldest kept event."""

    after: str | None = None
    limit: Limit = 100


class StreamQuery(Wanted, frozen=True, kw_only=True):
    """`after`: the cursor of an event; omitted: only new events. A Last-Event-ID header takes precedence."""

    after: str | None = None


class Switch(Because, frozen=True, kw_only=True):
    """How long events are kept, such as "3d"; omitted: unchanged, at first 3 days."""

    keep: str | None = None


class LogState(Struct, frozen=True, kw_only=True):
    """The state of the event log."""

    log: FeedState


async def list_events(call: Call[EventsQuery, None]) -> EventPage:
    """List logged events, oldest first.

    `next` is the cursor of the next page, even if this page is empty; `more`: the next page already has events.
    409 if the log is off; 410 if events after the cursor are no longer kept.
    """
    query = call.query
    return await call.desk.feed.events(query.after, limit=query.limit, wanted=_filter(query))


async def follow_events(call: Call[StreamQuery, None]) -> StreamingResponse:
    """Follow logged events as server-sent events.

    Each has its type as `event`, its cursor as `id` and its JSON as `data`. A reconnect with Last-Event-ID neither
    loses nor repeats events. 409 if the log is off; 410 if events after the cursor are no longer kept (in an open
    stream: an event `gone`). A revoked token ends the stream with an event `end`.
    """
    wanted = _filter(call.query)
    given = call.request.headers.get(_LAST_ID) or call.query.after
    feed = call.desk.feed
    begin = given or (await feed.state()).end
    await feed.events(begin, limit=1)  # refuses an expired cursor before the stream begins
    site = call.site
    return EventStream(site.live, site.event_reads, begin, wanted, access_of(call.request)).response()


async def show_event_log(call: Call[None, None]) -> LogState:
    """Show whether events are logged, and the oldest and newest cursor."""
    return LogState(log=await call.desk.feed.state())


async def switch_event_log(call: Call[None, Switch]) -> LogState:
    """Switch the event log on, or change how long events are kept."""
    return LogState(log=await call.desk.feed.switch_on(keep=call.body.keep, why=call.body.why))


async def switch_event_log_off(call: Call[None, Because]) -> LogState:
    """Switch the event log off and delete its events. 409 while there are webhooks."""
    return LogState(log=await call.desk.feed.switch_off(why=call.body.why))


def _filter(query: Wanted) -> EventFilter:
    types = [name for text in query.types for name in text.split(",") if name]
    return event_filter(types, query.queue, query.kind, query.tag, named="types")
