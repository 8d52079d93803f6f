"""The feed: the event log, for programs that follow it by a cursor."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import (
    DEFAULT_KEEP,
    EventFilter,
    EventLogState,
    EventType,
    LoggedEvent,
    read_cursor,
)
from perdure.errors import ArgumentError, ConflictError
from perdure.kinds.options import checked_names
from perdure.operate.audit_trail import checked_why
from perdure.operate.wording import listed
from perdure.storage.port import Store

EVENTS_PER_PAGE: Final = 1_000
_EVERYTHING: Final = EventFilter()


class FeedState(Struct, frozen=True, kw_only=True):
    """Whether events are logged, since when, and for how long they are kept (None: the log is off).

    A cursor before `oldest` has lost events. From `end` a follower gets only future events.
    """

    keep: timedelta | None
    since: datetime | None
    oldest: str
    end: str


class EventPage(Struct, frozen=True, kw_only=True):
    """Events in order, and the cursor to continue from. `more`: there are later events already."""

    events: tuple[LoggedEvent, ...]
    next: str
    more: bool


class Feed:
    """The event log of an open store, and commands recorded in the audit trail under `by`."""

    def __init__(self, store: Store, by: By) -> None:
        self._store = store
        self._by = by

    async def state(self) -> FeedState:
        """Whether events are logged, and which cursors are valid."""
        return _state(await self._store.event_log())

    async def switch_on(self, *, keep: Duration | None = None, why: str | None = None) -> FeedState:
        """Log events from now on, and keep each for `keep` (default: as before, or 3 days)."""
        span = None if keep is None else parse_duration("keep", keep)
        if span is not None and span < timedelta(minutes=1):
            raise ArgumentError("keep", f"must be at least 1m, got {keep!r}")
        known = (await self._store.event_log()).keep
        return _state(await self._store.switch_event_log(span or known or DEFAULT_KEEP, self._with(why)))

    async def switch_off(self, *, why: str | None = None) -> FeedState:
        """Stop logging, and delete all logged events; raises ConflictError while there are webhooks."""
        if hooks := await self._store.webhooks():
            names = listed(repr(view.webhook.name) for view in hooks)
            raise ConflictError(f"webhooks need the event log: delete {names} first")
        return _state(await self._store.switch_event_log(None, self._with(why)))

    async def events(
        self, after: str | None = None, *, limit: int = 100, wanted: EventFilter = _EVERYTHING
    ) -> EventPage:
        """The events after a cursor, from the oldest if there is none.

        Reads at most `limit` events and returns those that match: a page may be empty although later events match.
        Raises ConflictError if the log is off, and EventsGone if events after the cursor were deleted.
        """
        if not 1 <= limit <= EVENTS_PER_PAGE:
            raise ArgumentError("limit", f"must be from 1 to {EVENTS_PER_PAGE:,}, got {limit}")
        begin = (await self._store.event_log()).oldest if after is None else read_cursor("after", after)
        found = await self._store.read_events(begin, limit)
        return EventPage(
            events=tuple(event for event in found if wanted.lets(event)),
            next=found[-1].id if found else str(begin),
            more=len(found) == limit,
        )

    def _with(self, why: str | None) -> By:
        return By(self._by.actor, checked_why(why), self._by.source)


def event_filter(
    events: Iterable[str] = (),
    queues: Iterable[str] = (),
    kinds: Iterable[str] = (),
    tags: Iterable[str] = (),
    *,
    named: str = "events",
) -> EventFilter:
    """A filter of checked values; refuses a type of event that does not exist. `named` is what its error calls them."""
    names = checked_names(named, events)
    unknown = sorted(names - set(EventType))
    if unknown:
        raise ArgumentError(named, f"must be among {', '.join(EventType)}, got {unknown[0]!r}")
    return EventFilter(
        events=tuple(one for one in EventType if one in names),
        queues=tuple(sorted(checked_names("queues", queues))),
        kinds=tuple(sorted(checked_names("kinds", kinds))),
        tags=tuple(sorted(checked_names("tags", tags))),
    )


def _state(state: EventLogState) -> FeedState:
    return FeedState(keep=state.keep, since=state.since, oldest=str(state.oldest), end=str(state.end))
