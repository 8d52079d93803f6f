"""Notifications for awaited jobs: a caller that waits for a job notifies the workers, and they notify it at the end.

The ids of awaited jobs go out on the channel of wake-ups, to which every worker listens. A worker keeps them for 30
seconds, and rings for no other job: while none is awaited, an acknowledgement costs nothing more. It rings on a channel
of its own, so that no worker is woken by it. As with wake-ups, no statement that writes jobs sends it, and what comes
within a few milliseconds goes out together.

A notification may be lost: waiting callers also poll now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.fleet.listener import Listener, wakeups_of
from perdure.errors import PerdureError

_NOTIFY_INTERVAL_SECONDS: Final = 0.005
_AWAITED_IDS_KEPT_SECONDS: Final = 30.0
_AWAITED_IDS_KEPT: Final = 10_000  # awaited ids that a worker keeps
_IDS_PER_NOTIFICATION: Final = 200  # ids in one notification, which carries 8,000 bytes
_MARK: Final = "\x01"  # no queue's name begins with it
_NOTIFY: Final = "SELECT pg_notify(c, p) FROM unnest(%(channels)s::text[], %(payloads)s::text[]) AS n (c, p)"


class Ends:
    """Requests, sends and receives these notifications."""

    def __init__(self, naming: Naming, listening: Server, pool: Pool) -> None:
        self._asking, self._ringing = naming.channel, naming.channel_of_ends
        self._pool = pool
        self._listener = Listener(listening, self._ringing, lambda _: self._wake())
        self._awaited: dict[str, float] = {}  # until when
        self._until = 0.0  # when the last of them is forgotten
        self._own: set[str] = set()
        self._pending: dict[str, set[str]] = {}  # channel to ids
        self._sending: asyncio.Task[None] | None = None

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Ask workers to ring when these jobs end; a worker on this very store needs no notification."""
        if job_ids:
            self._keep(job_ids)
            self._own.update(job_ids)
            self._send(self._asking, job_ids)

    def heard(self, payload: str) -> bool:
        """Note awaited jobs, if a notification on the channel of wake-ups names some."""
        if not payload.startswith(_MARK):
            return False
        self._keep(payload[len(_MARK) :].split(","))
        return True

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Ring for those of these jobs that are known to be awaited."""
        if not self._awaited:
            return
        if asyncio.get_running_loop().time() > self._until:
            self._awaited, self._own = {}, set()
            return
        ended = [job_id for job_id in job_ids if job_id in self._awaited]
        if not ended:
            return
        if not self._own.isdisjoint(ended):
            self._own.difference_update(ended)
            self._wake()
        self._send(self._ringing, ended)

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen: each item means that an awaited job may have ended. Items that pile up are one."""
        async with self._listener.subscribe() as event:
            yield wakeups_of(event)

    async def close(self) -> None:
        """Send what is pending and stop listening."""
        if self._sending is not None:
            await asyncio.wait([self._sending])
        await self._listener.close()

    def _keep(self, job_ids: Collection[str]) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._awaited) + len(job_ids) > _AWAITED_IDS_KEPT:
            self._awaited = {job_id: until for job_id, until in self._awaited.items() if until > now}
            self._own &= self._awaited.keys()
        if len(self._awaited) + len(job_ids) <= _AWAITED_IDS_KEPT:
            self._until = now + _AWAITED_IDS_KEPT_SECONDS
            self._awaited.update(dict.fromkeys(job_ids, self._until))

    def _send(self, channel: str, job_ids: Iterable[str]) -> None:
        self._pending.setdefault(channel, set()).update(job_ids)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_until_quiet())

    async def _send_until_quiet(self) -> None:
        try:
            while self._pending:
                pending, self._pending = self._pending, {}
                channels, payloads = [], []
                for channel, job_ids in pending.items():
                    ids = sorted(job_ids)
                    for start in range(0, len(ids), _IDS_PER_NOTIFICATION):
                        channels.append(channel)
                        payloads.append(_MARK + ",".join(ids[start : start + _IDS_PER_NOTIFICATION]))
                with suppress(PerdureError):  # callers also poll, so a hint may be lost
                    params = {"channels": text_array(channels), "payloads": text_array(payloads)}
                    await self._pool.rows(_NOTIFY, params)
                await asyncio.sleep(_NOTIFY_INTERVAL_SECONDS)
        finally:
            self._sending = None

    def _wake(self) -> None:
        self._listener.wake()
