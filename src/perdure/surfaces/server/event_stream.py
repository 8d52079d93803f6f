"""The event log as server-sent events: each stream continues from its own cursor.

Streams at the same cursor share one query. A slow reader gets no new events until it has read the ones already sent, so
it needs no memory; a reader that reads nothing for a minute is disconnected. The caller's access is checked again every
few seconds: a revoked token ends the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from perdure.clock import Clock, SystemClock
from perdure.domain.operate.event_log import EventFilter, LoggedEvent
from perdure.errors import ConflictError, EventsGone, StoreError
from perdure.operate.commands.feed import EventPage
from perdure.operate.desk import Desk
from perdure.surfaces.server.live import (
    CHECK_INTERVAL_SECONDS,
    END,
    HEARTBEAT_SECONDS,
    LONGEST_STREAM_SECONDS,
    RECONNECT_MS,
    Check,
    LiveHub,
    Stream,
    StreamResponse,
    sse,
)

LOOK_INTERVAL_SECONDS: Final = 0.5
_EVENTS_PER_READ: Final = 500


class EventReads:
    """Reads the events after a cursor; streams that ask for the same at about the same time share one query."""

    def __init__(self, desk: Callable[[], Awaitable[Desk]], clock: Clock | None = None) -> None:
        self._desk = desk
        self._clock = clock or SystemClock()
        self._asked: dict[str, tuple[float, asyncio.Task[EventPage]]] = {}

    async def behind(self, cursor: str) -> EventPage:
        """The events after a cursor; raises EventsGone, or StoreError if the database is unavailable."""
        now = self._clock.monotonic()
        self._asked = {at: asked for at, asked in self._asked.items() if now - asked[0] < LOOK_INTERVAL_SECONDS}
        if cursor not in self._asked:
            self._asked[cursor] = (now, asyncio.create_task(self._ask(cursor)))
        return await asyncio.shield(self._asked[cursor][1])

    async def _ask(self, cursor: str) -> EventPage:
        return await (await self._desk()).feed.events(cursor, limit=_EVENTS_PER_READ)


class EventStream:
    """One stream of the log from `cursor` on; it ends with its reader, the server or the caller's token."""

    def __init__(self, hub: LiveHub, reads: EventReads, cursor: str, wanted: EventFilter, check: Check) -> None:
        self._hub = hub
        self._reads = reads
        self._cursor = cursor
        self._wanted = wanted
        self._check = check
        self._clock = SystemClock()

    def response(self) -> StreamResponse:
        """The streaming response; raises TooManyStreams."""
        stream = self._hub.open(())
        return StreamResponse(self._hub, stream, self._read(stream))

    async def _read(self, stream: Stream) -> AsyncIterator[bytes]:
        begun = checked = spoken = self._clock.monotonic()
        yield f"retry: {RECONNECT_MS}\nid: {self._cursor}\n\n".encode()
        while not stream.is_closed and (now := self._clock.monotonic()) - begun < LONGEST_STREAM_SECONDS:
            if now - checked >= CHECK_INTERVAL_SECONDS:
                checked = now
                if not await self._check():
                    yield END
                    return
            try:
                said, more = await self._next()
            except (EventsGone, ConflictError) as gone:  # the log was switched off, which deletes its events
                yield sse("gone", msgspec.json.encode({"error": str(gone)}))
                return
            if said or now - spoken >= HEARTBEAT_SECONDS:
                spoken = now
                yield said or f"id: {self._cursor}\n\n".encode()
            if not more:
                await stream.next(LOOK_INTERVAL_SECONDS)

    async def _next(self) -> tuple[bytes, bool]:
        """What to send now, and whether there is more; nothing while the database is unavailable."""
        try:
            page = await self._reads.behind(self._cursor)
        except StoreError:
            return b"", False
        wanted = [_message(event) for event in page.events if self._wanted.lets(event)]
        self._cursor = page.next
        return b"".join(wanted), page.more


def _message(event: LoggedEvent) -> bytes:
    return f"id: {event.id}\n".encode() + sse(event.type, msgspec.json.encode(event))
