"""Wake-ups: NOTIFY and LISTEN.

A notification takes a lock on the whole database when it is committed, so it is never sent by a statement that writes
jobs, and never more than once in a few milliseconds: the first ring goes out at once on a connection of its own, or
right behind the statement that stores a job; those that come while it rests go out together. A listener in the same
process is woken without the database.

Behind a pooler that lends sessions for one transaction, LISTEN receives nothing, and would send notifications to other
clients of the pool. So there each item comes from a clock, unless a second URL leads to the same database without the
pooler. Notifications are still sent, for processes that listen that way. Wake-ups are hints: polling finds every job.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from perdure.engines.postgres.database.arrays import UnstorableTextError, text_array
from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Statement
from perdure.engines.postgres.fleet.listener import Listener, wakeups_of
from perdure.errors import PerdureError

_NOTIFY_INTERVAL_SECONDS: Final = 0.005
_NOTIFY: Final = "SELECT pg_notify(%(channel)s::text, queue) FROM unnest(%(queues)s::text[]) AS q (queue)"
_NOTIFY_ALONG: Final = (  # only hints are lost with it
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%(channel)s::text, %(queue)s::text)"
)
_ECHO_TIMEOUT_SECONDS: Final = 5.0  # seconds
_QUEUE_NAME_LIMIT_BYTES: Final = 2_000  # bytes of a queue's name that a notification surely carries


class SignalPart:
    """Rings for others, and listens to them."""

    def __init__(
        self, naming: Naming, server: Server, pool: Pool, is_other: Callable[[str], bool], listening: Server
    ) -> None:
        self._channel = naming.channel
        self._server = server
        self._listening = listening  # where it listens
        self._pool = pool
        self._is_other = is_other  # whether a notification is about awaited jobs, and calls for no look
        self._listener = Listener(self._listening, self._channel, self._received)
        self._pending: set[str] = set()
        self._along: set[str] = set()
        self._ringing: asyncio.Task[None] | None = None

    def ring(self, queues: Iterable[str]) -> None:
        """Notify workers, soon and without waiting, that these queues have work."""
        to_notify = set(queues)
        if not to_notify:
            return
        self._wake()
        sent_along = to_notify & self._along
        self._along -= sent_along
        self._pending |= to_notify - sent_along
        if self._pending and self._ringing is None:
            self._ringing = asyncio.get_running_loop().create_task(self._ring_until_quiet(0.0))

    def ring_along(self, queue: str) -> Statement | None:
        """The notification for a queue, to be sent behind the statement that adds work; None: too soon after the last.

        The sender confirms it with `rang_along`.
        """
        if self._ringing is not None or len(queue) * 4 > _QUEUE_NAME_LIMIT_BYTES or self._server.shares_sessions:
            return None
        self._ringing = asyncio.get_running_loop().create_task(self._ring_until_quiet(_NOTIFY_INTERVAL_SECONDS))
        return _NOTIFY_ALONG, {"channel": self._channel, "queue": queue}

    def rang_along(self, queue: str) -> None:
        """The notification was sent: ignore a ring for the same job that follows directly."""
        self._along.add(queue)
        asyncio.get_running_loop().call_soon(self._along.discard, queue)

    @asynccontextmanager
    async def wakeups(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen: each item means "look now". Items that pile up are one."""
        async with self._listener.subscribe() as event:
            yield wakeups_of(event)

    async def close(self) -> None:
        """Send what is pending and stop listening."""
        if self._ringing is not None:
            await asyncio.wait([self._ringing])
        await self._listener.close()

    async def receives_notifications(self) -> bool:
        """Whether a notification that is sent through the store's connections arrives where it listens."""
        channel = f"perdure_{uuid.uuid4().hex}"
        connection = await self._listening.connect()
        try:
            if self._listening.shares_sessions:
                return False
            await connection.execute(f'LISTEN "{channel}"')
            await self._pool.rows(_NOTIFY, {"channel": channel, "queues": text_array([""])})
            async for _ in connection.notifies(timeout=_ECHO_TIMEOUT_SECONDS, stop_after=1):
                return True
            return False
        finally:
            await connection.close()

    async def _ring_until_quiet(self, rest: float) -> None:
        try:
            if rest:
                await asyncio.sleep(rest)
            while self._pending:
                queues, self._pending = self._pending, set()
                with suppress(PerdureError, UnstorableTextError):  # workers also poll, so a hint may be lost
                    names = text_array(
                        [queue.encode()[:_QUEUE_NAME_LIMIT_BYTES].decode(errors="ignore") for queue in queues]
                    )
                    await self._pool.rows(_NOTIFY, {"channel": self._channel, "queues": names})
                await asyncio.sleep(_NOTIFY_INTERVAL_SECONDS)
        finally:
            self._ringing = None

    def _received(self, payload: str) -> None:
        if not self._is_other(payload):
            self._wake()

    def _wake(self) -> None:
        self._listener.wake()
