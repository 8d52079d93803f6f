"""Ten thousand due retries, swept by two server processes: how long it takes, and whether any is sent twice.

`python -m benchmarks.systems.notifications [--engine sqlite|postgres] [--notifications 10000]`. Every notification has
failed once, over HTTP, and its retry is due. Then two processes of the system are started. The time runs from the start
of the first process until the receiver has taken the last notification. The receiver counts by the id of each one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from typing import ClassVar, Final

import structlog
from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, settle
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import JobFilter
from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import KIND, app, notify

NOTIFICATIONS: Final = 10_000
SERVERS: Final = 2
MOST_SECONDS: Final = 30.0
_SETTLE_SECONDS: Final = 3.0  # afterwards, for a second send that would be wrong
_TIME_LIMIT_SECONDS: Final = 300.0


class Swept(Struct, frozen=True):
    """What was measured."""

    seconds: float
    sending_seconds: float  # from the first delivery to the last
    sent: int
    twice: int
    left: int

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.seconds <= MOST_SECONDS and (self.twice, self.left) == (0, 0)


class Receiver(asyncio.Protocol):
    """A webhook's receiver that costs little: it refuses everything, or takes it and counts by id."""

    is_refusing = True
    taken: ClassVar[Counter[bytes]] = Counter()
    first_at = last_at = 0.0

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = end + 4 + int(_header(head, b"content-length"))
            if len(self._buffer) < length:
                return
            self._buffer = self._buffer[length:]
            self._answer(_header(head, b"idempotency-key"))

    def _answer(self, key: bytes) -> None:
        assert self._transport is not None
        if Receiver.is_refusing:
            self._transport.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
            return
        Receiver.last_at = time.perf_counter()
        Receiver.first_at = Receiver.first_at or Receiver.last_at
        Receiver.taken[key] += 1
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


def _header(head: bytes, name: bytes) -> bytes:
    return head.partition(b"\r\n" + name + b": ")[2].partition(b"\r\n")[0]


async def sweep(url: str, number: int) -> Swept:
    """Let so many retries fall due, start the servers, and wait until all are sent."""
    Receiver.is_refusing, Receiver.taken, Receiver.first_at = True, Counter(), 0.0
    listening = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0, backlog=1_000)
    os.environ["CERTCTL_WEBHOOK_URL"] = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    async with Sandbox(app, url=url) as box:
        now = box.now
    async with Sandbox(app, url=url, start=now - timedelta(hours=1), periodic=False) as box:
        await app.enqueue_many(notify.call(channel="webhook", subject=str(at), body="b") for at in range(number))
        failed = await box.drain(limit=number + 1, concurrency=100)
        assert failed.retrying == number, failed
    if url.startswith("postgresql:"):
        settle(Engine.POSTGRES, url)
    Receiver.is_refusing = False
    seconds = await _timed(url, number)
    async with Sandbox(app, url=url, periodic=False):
        left = await (await app.desk("benchmark")).count(
            JobFilter(kind=KIND, states=("ready", "running", "retrying", "dead")), cap=number
        )
    listening.close()
    return Swept(
        seconds,
        Receiver.last_at - Receiver.first_at,
        len(Receiver.taken),
        sum(times > 1 for times in Receiver.taken.values()),
        left.jobs,
    )


async def _timed(url: str, number: int) -> float:
    command = (sys.executable, "-m", "perdure_systems", "notifications", "--url", url, "--no-http")
    begun = time.perf_counter()
    servers = [
        await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        for _ in range(SERVERS)
    ]
    try:
        async with asyncio.timeout(_TIME_LIMIT_SECONDS):
            while len(Receiver.taken) < number:  # noqa: ASYNC110 - a server has no event to set
                await asyncio.sleep(0.05)
        seconds = Receiver.last_at - begun
        await asyncio.sleep(_SETTLE_SECONDS)
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
        for server in servers:
            await asyncio.wait_for(server.wait(), 60)
    return seconds


def main() -> None:
    """Measure each engine, print, and fail if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--notifications", type=int, default=NOTIFICATIONS)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    engines = [Engine[name.upper()] for name in given.engine or ("sqlite", "postgres")]
    broken = False
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        for engine in engines:
            with new_database(engine, server if engine is Engine.POSTGRES else folder) as database:
                swept = asyncio.run(sweep(address(engine, database), given.notifications))
            print(
                f"{engine}: {swept.sent:,} due notifications sent by {SERVERS} servers in {swept.seconds:.1f} s "
                f"(first to last {swept.sending_seconds:.1f} s, "
                f"{swept.sent / swept.sending_seconds:,.0f}/s), sent twice: {swept.twice}, left: {swept.left}; "
                f"promised {MOST_SECONDS:.0f} s: {'holds' if swept.holds else 'BROKEN'}",
                flush=True,
            )
            broken = broken or not swept.holds
    sys.exit(broken)


if __name__ == "__main__":
    main()
