"""A connection that listens to one channel for as long as an ear is open, and connects again after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg

from perdure.engines.postgres.database.connections import Server
from perdure.errors import PerdureError

_PATIENCE: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_LOOK_EVERY: Final = 1.0  # seconds, where nothing can be heard


class Listener:
    """Calls `on_payload` for each notification; `wake` sets every ear."""

    def __init__(self, server: Server, channel: str, on_payload: Callable[[str], None]) -> None:
        self._server = server
        self._channel = channel
        self._on_payload = on_payload
        self._ears: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Set every ear."""
        for ear in self._ears:
            ear.set()

    @asynccontextmanager
    async def ear(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set by each wake-up; the connection stays while there is any."""
        ear = asyncio.Event()
        self._ears.add(ear)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())
        try:
            yield ear
        finally:
            self._ears.discard(ear)
            if not self._ears:
                await self.close()

    async def close(self) -> None:
        """Hear no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self) -> None:
        """Hear until cancelled; after a loss connect again, ever more patiently, and look once for what was missed.

        Behind a pooler that lends sessions for one transaction nothing can be heard: there the ears are set by a clock.
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
                    await self._hear(connection)
                finally:
                    await connection.close()
            await asyncio.sleep(_PATIENCE[min(failures, len(_PATIENCE) - 1)])
            failures += 1
            self.wake()  # who cannot hear looks
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.wake()

    def _is_deaf(self) -> bool:
        return self._server.shares_sessions

    async def _hear(self, connection: psycopg.AsyncConnection[Any]) -> None:
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


async def heard(ear: asyncio.Event) -> AsyncIterator[None]:
    """The wake-ups of an ear, one after another, for ever."""
    while True:
        await ear.wait()
        ear.clear()
        yield None
