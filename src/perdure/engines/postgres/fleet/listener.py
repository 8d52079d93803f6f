"""A connection that listens to one channel while it has subscribers, and connects again after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg

from perdure.engines.postgres.database.connections import Server
from perdure.errors import PerdureError

_RECONNECT_PAUSES_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_POLL_INTERVAL_SECONDS: Final = 1.0  # seconds, where notifications cannot be received


class Listener:
    """Calls `on_payload` for each notification; `wake` sets the event of every subscriber."""

    def __init__(self, server: Server, channel: str, on_payload: Callable[[str], None]) -> None:
        self._server = server
        self._channel = channel
        self._on_payload = on_payload
        self._events: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Set the event of every subscriber."""
        for event in self._events:
            event.set()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set by each wake-up; the connection stays while there is any."""
        event = asyncio.Event()
        self._events.add(event)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())
        try:
            yield event
        finally:
            self._events.discard(event)
            if not self._events:
                await self.close()

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self) -> None:
        """Listen until cancelled; after a loss reconnect with backoff, and wake once for missed notifications.

        Behind a pooler that lends sessions for one transaction nothing can be received: there a clock sets the events.
        """
        failures = 0
        while not self._is_deaf():
            with suppress(psycopg.Error, OSError, PerdureError):
                connection = await self._server.connect()
                try:
                    if self._is_deaf():
                        break
                    await connection.execute(f'LISTEN "{self._channel}"')
                    failures = 0
                    self.wake()
                    await self._receive(connection)
                finally:
                    await connection.close()
            await asyncio.sleep(_RECONNECT_PAUSES_SECONDS[min(failures, len(_RECONNECT_PAUSES_SECONDS) - 1)])
            failures += 1
            self.wake()  # polls instead of listening
        while True:
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)
            self.wake()

    def _is_deaf(self) -> bool:
        return self._server.shares_sessions

    async def _receive(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Pass on each notification until the session is lost.

        The driver's own way to wait looks up ten times a second, and takes a detour for each notification.
        """
        loop, pgconn = asyncio.get_running_loop(), connection.pgconn
        lost, socket = asyncio.Event(), pgconn.socket

        def listen() -> None:
            try:
                pgconn.consume_input()
                while (notification := pgconn.notifies()) is not None:
                    self._on_payload(notification.extra.decode(errors="replace"))
            except psycopg.OperationalError:
                loop.remove_reader(socket)  # at once: the number may soon be that of another session
                lost.set()

        loop.add_reader(socket, listen)
        try:
            await lost.wait()
        finally:
            if not lost.is_set():
                loop.remove_reader(socket)


async def wakeups_of(event: asyncio.Event) -> AsyncIterator[None]:
    """Yield each time the event is set, for ever."""
    while True:
        await event.wait()
        event.clear()
        yield None
