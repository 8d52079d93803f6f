"""What the system's entries in the audit trail cost: recording failed attempts with them, against without.

`python -m benchmarks.ours.observing.audit [--engine sqlite|postgres]` prints the figures of each engine.

Batches of failed attempts are recorded in turns with the entries and without, in one database, so that the machine's
mood counts for both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from datetime import timedelta
from typing import Final

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import retrying
from perdure.domain.operate.audit import Audited
from perdure.domain.worker import NewWorker
from perdure.lifecycle.process.identity import this_process
from perdure.storage.records import Wanted

ROUNDS = 40
BATCH = 500
_FAILURE: Final = Failure("builtins.ValueError", "no such host", "Traceback (most recent call last): …")
_HOUR: Final = timedelta(hours=1)


async def _noop() -> None: ...


def audit_cost(engine: Engine, server: str) -> dict[str, float]:
    """The median microseconds of one failed attempt in a batch, without and with its entry, and their ratio."""
    with new_database(engine, server) as database:
        without, beside = asyncio.run(_record(address(engine, database)))
    return {"without": without, "with": beside, "ratio": beside / without}


async def _record(url: str) -> list[float]:
    async with App(url) as app:
        store, noop = await app.store(), app.job(_noop)
        worker = NewWorker(name="bench", process=this_process(), queues=("default",), concurrency=1, version="")
        worker_id = await store.register(worker)
        times: list[list[float]] = [[], []]
        for number in range(2 * ROUNDS):
            await app.enqueue_many(noop.call() for _ in range(BATCH))
            claims = await store.claim(worker_id, [Wanted("default", BATCH)])
            moves = [retrying(claim, Reason.FAILED, _FAILURE, _HOUR) for claim in claims]
            audit = frozenset({Audited.RETRY}) if number % 2 else frozenset[Audited]()
            begun = time.perf_counter()
            answer = await store.acknowledge(moves, audit)
            times[number % 2].append((time.perf_counter() - begun) * 1e6 / BATCH)
            assert answer.applied == BATCH
        return [statistics.median(taken) for taken in times]


def main() -> None:
    """Measure each engine once, and print."""
    from benchmarks.ours.__main__ import server_for  # noqa: PLC0415 - the whole harness, for one helper of it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                figures = audit_cost(engine, server)
            print(engine, ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
