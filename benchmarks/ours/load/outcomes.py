"""How soon `handle.result()` answers once a job has ended in another process, and what the wait costs.

`python -m benchmarks.ours.load.outcomes [--engine sqlite|postgres]` prints, for jobs of 10 ms, 300 ms and 3 s and for
200 callers at once, the time from the handler's end to the answer (the acknowledgement is part of it), and how many
queries a second the waiting process has made.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import time
from typing import NamedTuple

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.measure import percentile
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings
from perdure.enqueue.job import Job

AT_ONCE = 200


class Plan(NamedTuple):
    """Jobs of one length, so many callers at once, so many times."""

    seconds: float
    callers: int
    rounds: int


PLANS = (Plan(0.01, 1, 50), Plan(0.3, 1, 10), Plan(3.0, 1, 3), Plan(0.3, AT_ONCE, 3), Plan(3.0, AT_ONCE, 1))


class Waited(NamedTuple):
    """Milliseconds from the handler's end to the answer, and queries a second meanwhile."""

    p50: float
    p99: float
    queries: float


async def _last(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return time.time()  # noqa: TID251 - two processes of one machine are compared


def declared(url: str) -> tuple[App, Job[[float], float]]:
    """The app of both processes."""
    app = App(url)
    return app, app.job(name="last")(_last)


def _work(url: str) -> None:
    async def work() -> None:
        app, _ = declared(url)
        async with app:
            await (await app.worker(WorkerSettings(concurrency=500))).run()

    asyncio.run(work())


async def _wait(url: str, plan: Plan) -> Waited:
    app, last = declared(url)
    async with app:
        await (await last.enqueue(0.0)).result("30s")  # the worker is there, and the watch is open
        outcomes = await app._stores.outcomes()  # noqa: SLF001 - what the wait costs shows nowhere else
        before, begun = outcomes.queries, time.perf_counter()
        waits: list[float] = []

        async def one() -> None:
            handle = await last.enqueue(plan.seconds)
            ended = await handle.result("60s")
            waits.append((time.time() - ended) * 1_000)  # noqa: TID251 - as above

        for _ in range(plan.rounds):
            await asyncio.gather(*(one() for _ in range(plan.callers)))
        rate = (outcomes.queries - before) / (time.perf_counter() - begun)
    return Waited(statistics.median(waits), percentile(waits, 0.99), rate)


def waits(engine: Engine, server: str, plan: Plan) -> Waited:
    """Run one plan with a worker in a process of its own."""
    with new_database(engine, server) as database:
        url = address(engine, database)
        asyncio.run(declared(url)[0].migrate())
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(url,), daemon=True)
        process.start()
        try:
            return asyncio.run(_wait(url, plan))
        finally:
            process.terminate()
            process.join()


def main() -> None:
    """Measure each engine, and print."""
    from benchmarks.ours.__main__ import server_for  # noqa: PLC0415 - the whole harness, for one helper of it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                for plan in PLANS:
                    p50, p99, queries = waits(engine, server, plan)
                    what = f"{plan.callers} × {plan.seconds:g} s"
                    print(f"{engine}: {what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {queries:.0f} queries/s")


if __name__ == "__main__":
    main()
