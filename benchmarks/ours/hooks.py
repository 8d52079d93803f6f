"""What hooks cost: the same jobs drained with nothing, with one empty middleware, and with every attempt logged.

`python -m benchmarks.ours.hooks [--engine sqlite|postgres]` prints the figures of each engine.

The drains take turns on one database, and the best of each counts, so that the machine's mood counts for all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import App, AttemptLog, Context, WorkerSettings

JOBS = 60_000
ROUNDS = 7
PLAIN, MIDDLEWARE, LOGGED = "plain", "one middleware", "attempts logged"


async def _noop() -> None: ...


def _empty(ctx: Context) -> Iterator[None]:
    del ctx
    yield


def hook_cost(engine: Engine, server: str, *, jobs: int = JOBS) -> dict[str, float]:
    """Jobs per second of each, and what is left of the first."""
    rates = dict.fromkeys((PLAIN, MIDDLEWARE, LOGGED), 0.0)
    with new_database(engine, server) as database:
        url = address(engine, database)
        for _ in range(ROUNDS):
            for name in rates:
                rates[name] = max(rates[name], asyncio.run(_drained(url, name, jobs)))
    return {**rates, **{f"{name} ratio": rates[name] / rates[PLAIN] for name in (MIDDLEWARE, LOGGED)}}


async def _drained(url: str, name: str, jobs: int) -> float:
    logging.getLogger().handlers[:] = [logging.NullHandler()]
    async with App(url) as app:
        noop = app.job(name="noop")(_noop)
        if name == MIDDLEWARE:
            app.middleware(_empty)
        if name == LOGGED:
            app.log_events(AttemptLog())
        await app.enqueue_many(noop.call() for _ in range(jobs))
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        begun = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
            await asyncio.sleep(0.005)
        rate = jobs / (time.perf_counter() - begun)
        worker.stop()
        await running
        return rate


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    chosen = parser.parse_args().engine or ["sqlite", "postgres"]
    if "sqlite" in chosen:
        with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
            _show(Engine.SQLITE, hook_cost(Engine.SQLITE, folder))
    if "postgres" in chosen:
        with postgres_server() as server:
            _show(Engine.POSTGRES, hook_cost(Engine.POSTGRES, server))


def _show(engine: Engine, figures: dict[str, float]) -> None:
    for name, value in figures.items():
        print(f"{engine} {name}: {value:,.2f}")


if __name__ == "__main__":
    main()
