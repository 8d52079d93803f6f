"""How closely a worker that opens with orphans follows the curve that is promised (C2).

`python -m benchmarks.ours.load.opening [--engine sqlite|postgres] [--orphans 1000] [--phase 10]`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import AbstractContextManager

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import App, Opening, WorkerSettings
from perdure.domain.worker import NewWorker
from perdure.lifecycle.process.identity import this_process
from perdure.storage.records import Wanted

ORPHANS = 1_000
PHASE = 10.0


def deviation(engine: Engine, server: str, *, orphans: int = ORPHANS, phase: float = PHASE) -> float:
    """How far the start that is farthest from the curve is off, as a share of the whole ramp."""
    with new_database(engine, server) as database:
        starts = asyncio.run(_starts(address(engine, database), orphans, Opening(phase)))
    waits = [wait.total_seconds() for wait in Opening(phase).waits(orphans)]
    return max(abs(start - wait) for start, wait in zip(starts, waits, strict=True)) / waits[-1]


async def _starts(url: str, orphans: int, opening: Opening) -> list[float]:
    """When each of a dead worker's jobs starts again, in seconds after the first."""
    starts: list[float] = []

    async def note(index: int) -> None:
        del index
        starts.append(time.perf_counter())

    async with App(url) as app:
        job = app.job(note)
        await app.enqueue_many(job.call(index) for index in range(orphans))
        store = await app.store()
        dead = await store.register(
            NewWorker(name="dead", process=this_process(), queues=("default",), concurrency=orphans, version="")
        )
        claims = await store.claim(dead, [Wanted("default", orphans)])
        assert len(claims) == orphans
        await store.retire(dead)
        worker = await app.worker(WorkerSettings(opening=opening))
        running = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(2 * opening.longest.total_seconds() + 60):
                while len(starts) < orphans:  # noqa: ASYNC110 - what is measured must not be told to
                    await asyncio.sleep(0.01)
        finally:
            worker.stop()
            await running
    return [start - starts[0] for start in starts]


def _server_for(engine: Engine) -> AbstractContextManager[str]:
    return postgres_server() if engine is Engine.POSTGRES else tempfile.TemporaryDirectory(prefix="opening-")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--orphans", type=int, default=ORPHANS)
    parser.add_argument("--phase", type=float, default=PHASE, help="seconds")
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with _server_for(engine) as server:
                share = deviation(engine, server, orphans=options.orphans, phase=options.phase)
            print(f"{engine}: farthest start from the curve {share:.2%} of the ramp")


if __name__ == "__main__":
    main()
