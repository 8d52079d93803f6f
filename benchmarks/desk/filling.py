"""A database of so many jobs, on either engine."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.desk import history_in_postgres, history_in_sqlite
from benchmarks.desk.history import LENGTH, write_statistics
from benchmarks.harness.contestant import Engine
from benchmarks.ours.addresses import address
from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.storage.records import JobFilter, Page

_STATES: Final[dict[str, JobState]] = {
    "job": JobState.SUCCEEDED,
    "dead_job": JobState.DEAD,
    "waiting_job": JobState.WAITING,
    "parent_job": JobState.RETRYING,
}


def fill(engine: Engine, database: str, jobs: int) -> float:
    """Create the tables and write the history; how many seconds that took."""
    begun, now = time.monotonic(), SystemClock().now()
    write = history_in_postgres.write_history if engine is Engine.POSTGRES else history_in_sqlite.write_history
    asyncio.run(_migrate(address(engine, database)))
    write(database, jobs, now)
    asyncio.run(_add_statistics(address(engine, database)))
    return time.monotonic() - begun


def names_in(url: str) -> dict[str, str]:
    """What pages are asked for: a job of each sort, the largest group, and a place deep in the list of jobs."""
    return asyncio.run(_names(url))


async def _migrate(url: str) -> None:
    store = store_for(url)
    await store.open()
    await store.migrate()
    await store.close()


async def _add_statistics(url: str) -> None:
    store = store_for(url)
    await store.open()
    await write_statistics(store, SystemClock().now())
    await store.close()


async def _names(url: str) -> dict[str, str]:
    store = store_for(url)
    await store.open()
    try:
        desk = Desk(store, "benchmark")
        names: dict[str, str] = {}
        for name, state in _STATES.items():
            [job] = (await desk.jobs(JobFilter(states=frozenset({state})), Page(1))).jobs
            names[name] = job.id
        largest = max((await desk.failure_groups(limit=200)).groups, key=lambda group: group.jobs)
        middle = f"{round((SystemClock().now() - LENGTH / 2).timestamp() * 1_000):012x}"
        deep = f"{middle[:8]}-{middle[8:]}-7000-8000-000000000000"
        return {**names, "group": largest.fingerprint, "deep": deep}
    finally:
        await store.close()
