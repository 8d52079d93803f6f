"""What perdure promises beyond the race with its peers: concurrent enqueues, long histories, threads, size."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, run_sql, settle
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings
from perdure.domain.worker import NewWorker
from perdure.lifecycle.process.identity import this_process
from perdure.storage.records import Wanted

HISTORY = 1_000_000
CLAIM = 100
ROUNDS = 110
WARM_UP = 10  # rounds that do not count
TURNS = 5


async def _noop(index: int) -> None:
    del index


def _noop_in_thread(index: int) -> None:
    del index


def concurrent_enqueues(engine: Engine, server: str, *, callers: int = 64, each: int = 500) -> float:
    """Enqueues per second of many callers on one event loop."""

    async def measure(url: str) -> float:
        async with App(url) as app:
            noop = app.job(_noop)
            await noop.enqueue(0)

            async def caller() -> None:
                for index in range(each):
                    await noop.enqueue(index)

            begun = time.perf_counter()
            await asyncio.gather(*(caller() for _ in range(callers)))
            return callers * each / (time.perf_counter() - begun)

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))


def thread_drain(engine: Engine, server: str, *, jobs: int = 30_000, threads: int = 8) -> float:
    """Jobs per second of a plain function, in the threads of one worker."""

    async def measure(url: str) -> float:
        async with App(url) as app:
            noop = app.job(_noop_in_thread)
            await app.enqueue_many(noop.call(index) for index in range(jobs))
            worker = await app.worker(WorkerSettings(concurrency=1_000, threads=threads))
            begun = time.perf_counter()
            running = asyncio.create_task(worker.run())
            while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
                await asyncio.sleep(0.005)
            rate = jobs / (time.perf_counter() - begun)
            worker.stop()
            await running
            return rate

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))


def claims_beside_history(engine: Engine, server: str, *, history: int = HISTORY) -> float:
    """What a claim costs in a database with so many finished jobs, against one in an empty database."""
    with new_database(engine, server) as empty, new_database(engine, server) as full:
        asyncio.run(_create(address(engine, full)))
        _write_history(engine, full, history)
        return claims_against(engine, full, empty)


def claims_against(engine: Engine, full: str, empty: str) -> float:
    """What a claim of 100 costs in one database, against another.

    Both are taken in turns, and of each the best median counts: a machine whose mood changes favours neither.
    """
    taken: dict[str, list[float]] = {empty: [], full: []}
    for _ in range(TURNS):
        for database, times in taken.items():
            times.append(asyncio.run(_claim_median(address(engine, database))))
    return min(taken[full]) / min(taken[empty])


async def _create(url: str) -> None:
    async with App(url):
        pass


async def _claim_median(url: str) -> float:
    async with App(url) as app:
        noop = app.job(_noop)
        store = await app.store()
        await app.enqueue_many(noop.call(index) for index in range(CLAIM * ROUNDS))
        worker = await store.register(
            NewWorker(name="bench", process=this_process(), queues=("default",), concurrency=1, version="")
        )
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            claims = await store.claim(worker, [Wanted("default", CLAIM)])
            times.append(time.perf_counter() - begun)
            assert len(claims) == CLAIM
        return statistics.median(times[WARM_UP:])


def _write_history(engine: Engine, database: str, history: int) -> None:
    if engine is Engine.POSTGRES:
        run_sql(
            database,
            f"""INSERT INTO perdure.job (id, kind, queue, priority, args, created_at, crash_limit)
                SELECT gen_random_uuid(), 'old', 'default', 5, '{{}}', now(), 3 FROM generate_series(1, {history})""",
            """INSERT INTO perdure.finished
                 (job_id, queue, state, reason, started_at, finished_at, failures, crashes, since)
               SELECT id, 'default', 'succeeded', 'done', now(), now(), 0, 0, now()
               FROM perdure.job WHERE kind = 'old'""",
        )
        settle(engine, database)
        return
    import apsw  # noqa: PLC0415 - only for SQLite

    connection = apsw.Connection(database)
    connection.execute(
        f"""WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {history})
            INSERT INTO perdure_job (id, kind, queue, priority, args, created_at, crash_limit, turn)
            SELECT lower(hex(randomblob(16))), 'old', 'default', 5, '{{}}', 0, 3, 0 FROM n"""
    )
    connection.execute(
        """INSERT INTO perdure_finished
             (job_id, queue, state, reason, started_at, finished_at, failures, crashes, since)
           SELECT id, 'default', 'succeeded', 'done', 0, 0, 0, 0, 0 FROM perdure_job WHERE kind = 'old'"""
    )
    connection.close()


def footprint() -> dict[str, float]:
    """The time to `import perdure` in milliseconds, compiled as pip leaves it; the memory of an idle worker in MB."""
    script = "import time; t = time.perf_counter(); import perdure; print((time.perf_counter() - t) * 1000)"
    with tempfile.TemporaryDirectory() as compiled:
        imports = [float(_output(script, compiled)) for _ in range(6)][1:]
    return {"import_ms": statistics.median(imports), "idle_rss_mb": float(_output(_IDLE))}


_IDLE = """
import asyncio, os, tempfile
from pathlib import Path
from perdure import App

async def main():
    async with App(f"sqlite:///{tempfile.mkdtemp()}/idle.db") as app:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await worker.opened.wait()
        await asyncio.sleep(2)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        worker.stop()
        await running

asyncio.run(main())
"""


def _output(script: str, compiled: str | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if compiled is not None:
        environment["PYTHONPYCACHEPREFIX"] = compiled
    command = [sys.executable, "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
