"""What gates cost: the same jobs drained by one worker without a gate, and with one that has 1,000 keys and holds none.

Each key has 100 slots, or 1,000 starts a second: of both about a twentieth is used.

The ratio is of one run on one database, so that the machine's mood counts for both.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App, Concurrency, Rate, WorkerSettings

KEYS = 1_000
JOBS = 60_000
ROUNDS = 5
SLOTS = 100
STARTS = 1_000


async def _noop(tenant: int) -> None:
    del tenant


def gate_cost(engine: Engine, server: str, *, jobs: int = JOBS, keys: int = KEYS) -> dict[str, float]:
    """Jobs per second without a gate, with slots and with a rate for each key, and what is left of the first."""
    kinds: dict[str, dict[str, Any]] = {
        "ungated": {},
        "slots": {"gates": Concurrency(SLOTS, key="tenant")},
        "rates": {"gates": Rate(STARTS, "1s", key="tenant")},
    }
    rates = dict.fromkeys(kinds, 0.0)
    with new_database(engine, server) as database:
        url = address(engine, database)
        for _ in range(ROUNDS):  # the best one counts, for each alike
            for name, options in kinds.items():
                rates[name] = max(rates[name], asyncio.run(_drained(url, name, options, jobs, keys)))
    return {
        **rates,
        "slots ratio": rates["slots"] / rates["ungated"],
        "rates ratio": rates["rates"] / rates["ungated"],
    }


async def _drained(url: str, name: str, options: dict[str, Any], jobs: int, keys: int) -> float:
    async with App(url) as app:
        noop = app.job(name=name, **options)(_noop)
        await app.enqueue_many(noop.call(index % keys) for index in range(jobs))
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        begun = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
            await asyncio.sleep(0.005)
        rate = jobs / (time.perf_counter() - begun)
        worker.stop()
        await running
        return rate
