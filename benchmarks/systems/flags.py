"""A thousand flag schedules due at one moment, applied by two processes: how late each is, and whether it is once.

`python -m benchmarks.systems.flags [--engine sqlite|postgres] [--schedules 1000]`. Two processes of the system are open
when the schedules fall due, all at the same instant, each for a flag of its own. A schedule's delay runs from that
instant until its flag is changed, by the clock of the database. The record of changes, which is written in the
transaction that changes a flag, tells how often each schedule was applied.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import structlog
from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, settle
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import JobFilter, JobView, Page
from perdure.testing import Sandbox
from perdure_systems.flags.jobs import APPLY, app, database
from perdure_systems.flags.records import Change, Updates
from perdure_systems.flags.schedules import NewSchedule, call_for
from perdure_systems.flags.store import add_flag

SCHEDULES: Final = 1_000
PROCESSORS: Final = 2
MOST_SECONDS: Final = 60.0
_AHEAD: Final = timedelta(seconds=5)
_SETTLE_SECONDS: Final = 2.0  # afterwards, for a second application that would be wrong
_TIME_LIMIT_SECONDS: Final = 180.0


class Applied(Struct, frozen=True):
    """What was measured."""

    number: int
    delays: list[float]
    twice: int
    by_processor: dict[str, int]

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        in_time = len(self.delays) == self.number and max(self.delays) <= MOST_SECONDS
        return in_time and self.twice == 0 and len(self.by_processor) == PROCESSORS


async def apply_all(url: str, number: int) -> Applied:
    """Make the schedules while the processors run, and look at what has become of them."""
    os.environ.pop("FLAG_CACHE_URL", None)
    async with Sandbox(app, url=url, periodic=False) as box:
        await database.migrate()
        async with database.transaction() as session:
            for at in range(number):
                await add_flag(
                    session, f"flag-{at}", enabled=False, rollout=100, description="", at=box.now, by="benchmark"
                )
    if url.startswith("postgresql:"):
        settle(Engine.POSTGRES, url)
    async with _processors(url), Sandbox(app, url=url, periodic=False) as box:
        due = box.now + _AHEAD
        new = NewSchedule(Updates(enabled=True), scheduled_at=due)
        await app.enqueue_many([call_for(f"flag-{at}", new, "benchmark")[1] for at in range(number)])
        done = await _all_done(number)
        changes = await database.all(Change, "SELECT * FROM flag_change WHERE schedule_id IS NOT NULL")
        await database.close()
    times = Counter(change.schedule_id for change in changes)
    return Applied(
        number,
        [(job.finished_at - due).total_seconds() for job in done if job.finished_at is not None],
        sum(count > 1 for count in times.values()) + len(changes) - len(times),
        dict(Counter(str(job.worker) for job in done)),
    )


async def _all_done(number: int) -> list[JobView]:
    desk, which = await app.desk("benchmark"), JobFilter(kind=APPLY, states="succeeded")
    async with asyncio.timeout(_TIME_LIMIT_SECONDS):
        while (await desk.count(which, cap=number)).jobs < number:  # noqa: ASYNC110 - of other processes
            await asyncio.sleep(0.2)
    await asyncio.sleep(_SETTLE_SECONDS)
    found: list[JobView] = []
    page = await desk.jobs(which, Page(500))
    found += page.jobs
    while page.next is not None:
        page = await desk.jobs(which, Page(500, before=page.next))
        found += page.jobs
    return found


@asynccontextmanager
async def _processors(url: str) -> AsyncIterator[None]:
    """Two processes of the system, both open."""
    command = (sys.executable, "-m", "perdure_systems", "flags", "--url", url, "--port", "0")
    processes = [
        await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        for _ in range(PROCESSORS)
    ]
    try:
        reading = []
        for process in processes:
            assert process.stdout is not None
            while "✿ Flags at" not in (line := (await process.stdout.readline()).decode()):
                assert line, "a processor has ended"
            reading.append(asyncio.create_task(process.stdout.read()))
        yield
    finally:
        for process in processes:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        for process in processes:
            await asyncio.wait_for(process.wait(), 60)


def described(engine: Engine, seen: Applied) -> str:
    """The figures in a line."""
    late, shares = sorted(seen.delays), ", ".join(str(number) for number in sorted(seen.by_processor.values()))
    return (
        f"{engine}: {len(late):,} of {seen.number:,} schedules applied by {len(seen.by_processor)} processors "
        f"({shares}), "
        f"delay {late[0]:.2f} s to {late[-1]:.2f} s, median {statistics.median(late):.2f} s, "
        f"{len(late) / (late[-1] - late[0]):,.0f}/s, applied twice: {seen.twice}; "
        f"promised {MOST_SECONDS:.0f} s: {'holds' if seen.holds else 'BROKEN'}"
    )


def main() -> None:
    """Measure each engine, print, and fail if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    broken = False
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        for engine in [Engine[name.upper()] for name in given.engine or ("sqlite", "postgres")]:
            with new_database(engine, server if engine is Engine.POSTGRES else folder) as place:
                seen = asyncio.run(apply_all(address(engine, place), given.schedules))
            print(described(engine, seen), flush=True)
            broken = broken or not seen.holds
    sys.exit(broken)


if __name__ == "__main__":
    main()
