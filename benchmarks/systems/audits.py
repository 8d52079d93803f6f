"""The audit pipeline for a minute: requests come at a steady rate, and all parts run but the slow ones.

`python -m benchmarks.systems.audits [--engine sqlite|postgres] [--rate 60] [--seconds 60]`. One process takes requests,
as the API does, and runs the workers. Measuring, photographs and the PDF are stand-ins that take 50 ms each; the files,
the steps, the webhook's signature, its delivery over HTTP and the record of it are real. An audit counts when the
receiver has its webhook. The receiver runs in a process of its own and counts by audit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from typing import ClassVar, Final

import msgspec
import structlog

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.__main__ import server_for
from benchmarks.ours.addresses import address

RATE: Final = 60
SECONDS: Final = 60
PROMISED: Final = 50
_PART_SECONDS: Final = 0.05
_TIME_LIMIT_SECONDS: Final = 120.0


class Run(msgspec.Struct, frozen=True):
    """What one process reports: how many were requested, how long the last request came after its time, its CPU."""

    requested: int
    late: float
    cpu_seconds: float


class Receiver(asyncio.Protocol):
    """A webhook's receiver that costs little."""

    taken: ClassVar[Counter[bytes]] = Counter()
    at: ClassVar[list[float]] = []

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is complete."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(self._buffer[:end].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self._buffer) >= end + 4 + length:
            Receiver.taken[msgspec.json.decode(self._buffer[end + 4 :])["auditId"]] += 1
            Receiver.at.append(time.perf_counter())
            self._buffer = b""
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


async def pipeline(url: str, rate: int, seconds: int) -> dict[str, float]:
    """Let a process work for so long; the figures."""
    Receiver.taken, Receiver.at = Counter(), []
    listening = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0, backlog=1_000)
    with tempfile.TemporaryDirectory(prefix="audits-") as folder:
        environment = {
            **os.environ,
            "PERDURE_URL": url,
            "AUDITS_STORAGE_DIR": folder,
            "AUDITS_WEBHOOK_URL": f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/",
            "AUDITS_WEBHOOK_SECRET": "secret",
            "AUDITS_ALLOW_PRIVATE_ADDRESSES": "true",
            "AUDITS_CONCURRENCY": "60",
        }
        environment.pop("AUDITS_PAGESPEED_URL", None)
        arguments = ["-m", "benchmarks.systems.audits", "--work", "--rate", str(rate), "--seconds", str(seconds)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=environment, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await asyncio.wait_for(process.communicate(), seconds + _TIME_LIMIT_SECONDS)
    listening.close()
    run = msgspec.json.decode(said.splitlines()[-1], type=Run)
    begun, last = Receiver.at[0], Receiver.at[-1]
    within = sum(at <= begun + seconds for at in Receiver.at)
    return {
        "requested": run.requested,
        "delivered": len(Receiver.taken),
        "delivered twice": sum(times > 1 for times in Receiver.taken.values()),
        "audits/s over the time": within / seconds,
        "jobs/s over the time": 2 * within / seconds,
        "seconds until the last": last - begun,
        "requests late by s": run.late,
        "CPU ms an audit": run.cpu_seconds * 1_000 / run.requested,
    }


async def work(rate: int, seconds: int) -> Run:
    """Take requests at this rate and run them all."""
    from perdure_systems.audits.intake import create_or_find  # noqa: PLC0415 - as above
    from perdure_systems.audits.jobs import app, database  # noqa: PLC0415 - as above
    from perdure_systems.audits.pipeline.instruments import using_instruments  # noqa: PLC0415 - the app reads PERDURE_URL
    from perdure_systems.audits.standins import QuickInstruments  # noqa: PLC0415 - as above

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with using_instruments(QuickInstruments(_PART_SECONDS)):
        async with app:
            await database.migrate()
            worker = await app.worker()
            running = asyncio.create_task(worker.run())
            await worker.started()
            begun, late = time.perf_counter(), 0.0
            asked: set[asyncio.Task[object]] = set()
            for number in range(rate * seconds):
                wait = begun + number / rate - time.perf_counter()
                late = max(late, -wait)
                await asyncio.sleep(max(0, wait))
                task: asyncio.Task[object] = asyncio.create_task(
                    create_or_find(f"https://127.0.0.1/{number}", "mobile")
                )
                asked.add(task)
                task.add_done_callback(asked.discard)
            await asyncio.gather(*asked)
            while worker.acknowledged < 2 * rate * seconds:  # noqa: ASYNC110 - what is measured must not be told to
                await asyncio.sleep(0.05)
            worker.stop()
            await running
        await database.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Run(rate * seconds, late, used.ru_utime + used.ru_stime)


def main() -> None:
    """Measure each engine, print, and fail if the promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(msgspec.json.encode(asyncio.run(work(options.rate, options.seconds))).decode())
        return
    holds = True
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server, new_database(engine, server) as database:
                figures = asyncio.run(pipeline(address(engine, database), options.rate, options.seconds))
            kept = figures["audits/s over the time"] >= PROMISED and not figures["delivered twice"]
            holds = holds and kept
            print(f"{engine}: {'holds' if kept else 'BROKEN'}: at least {PROMISED} audits/s, none told twice")
            for name, value in figures.items():
                print(f"  {name}: {value:,.1f}")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
