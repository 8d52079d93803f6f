"""The measurements, each on an empty database of its own.

*Drain*: the queue is filled while no worker runs, the workers are started and held at a gate,
and the clock runs from the first handler's start to the moment the database shows no job
without its acknowledgement. *Pick-up*: a producer enqueues at a steady pace; a job's wait
is the time from just before the enqueue call to its handler's start in another process.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.harness.contestant import Purpose
from benchmarks.harness.databases import new_database, settle
from benchmarks.harness.ledger import new_ledger
from benchmarks.harness.measure import Measurement, Metric, percentile
from benchmarks.harness.processors import in_use, processor_times

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from benchmarks.harness.contestant import Contestant, Plan
    from benchmarks.harness.ledger import Ledger
    from benchmarks.harness.workers import Crew

    MakeCrew = Callable[[str, Path, Purpose, int], Crew]

LOOK_SECONDS = 0.01  # between two looks at a crew: whoever measures must not take from what is measured
WARM_UP_SHARE = 0.1
ENQUEUE_SECONDS = 10.0


class StalledError(Exception):
    """A phase did not come to its end within the plan's patience."""


class Phases:
    """Run the measurements of one contestant."""

    def __init__(self, contestant: Contestant, plan: Plan, server: str, folder: Path, make_crew: MakeCrew) -> None:
        """Prepare to measure `contestant` on `server`, with files in `folder`."""
        self.contestant = contestant
        self.plan = plan
        self.server = server
        self.folder = folder
        self.make_crew = make_crew

    async def all(self) -> list[Measurement]:
        """Take every measurement that the plan asks for."""
        figures = [await self.enqueue_one_by_one()]
        figures += await self.fill_and_drain(Metric.DRAIN_ONE, Metric.BUSY_ONE, workers=1)
        if self.plan.two_workers:
            figures += (await self.fill_and_drain(Metric.DRAIN_TWO, Metric.BUSY_TWO, workers=2))[1:]
        return figures + await self.pickup()

    async def enqueue_one_by_one(self) -> Measurement:
        """Enqueue job after job from one caller, each durable before the next."""
        with new_database(self.contestant.engine, self.server) as url:
            await self.contestant.prepare(url)
            async with self.contestant.producer(url) as producer:
                await producer.enqueue(0, 0)
                begun = time.monotonic()
                done = 0
                while done < self.plan.single_jobs and time.monotonic() < begun + ENQUEUE_SECONDS:
                    await producer.enqueue(done, 0)
                    done += 1
                seconds = time.monotonic() - begun
        return self._rate(Metric.ENQUEUE_ONE_BY_ONE, done, seconds)

    async def fill_and_drain(self, metric: Metric, busy: Metric, workers: int) -> list[Measurement]:
        """Fill a queue in bulk, then let `workers` processes empty it."""
        jobs = self.plan.drain_jobs
        with new_database(self.contestant.engine, self.server) as url:
            await self.contestant.prepare(url)
            async with self.contestant.producer(url) as producer:
                begun = time.monotonic()
                await producer.enqueue_many(jobs)
                filled = time.monotonic() - begun
            settle(self.contestant.engine, url)
            with self._crew_at_work(url, Purpose.DRAIN, workers) as (ledger, crew):
                before = processor_times()
                drained = await self._await_drained(url, ledger, crew, jobs)
                share = in_use(before, processor_times())
        return [
            self._rate(Metric.ENQUEUE_BULK, jobs, filled),
            self._rate(metric, jobs, drained),
            Measurement(name=self.contestant.name, metric=busy, value=share, unit=""),
        ]

    async def pickup(self) -> list[Measurement]:
        """Enqueue at a steady pace and see how soon each job starts."""
        with new_database(self.contestant.engine, self.server) as url:
            await self.contestant.prepare(url)
            with self._crew_at_work(url, Purpose.PICKUP, 1) as (ledger, crew):
                await asyncio.sleep(1.0)
                async with self.contestant.producer(url) as producer:
                    await self._enqueue_at_pace(producer.enqueue)
                    await self._until(lambda: all(ledger.waits_ns()), crew, "every job to start")
                waits = ledger.waits_ns()
        waits = waits[round(len(waits) * WARM_UP_SHARE) :]
        settings = {"rate": f"{self.plan.pickup_rate} jobs/s", "jobs": str(len(waits))}
        return [
            Measurement(
                name=self.contestant.name,
                metric=metric,
                value=percentile(waits, share) / 1e6,
                unit="ms",
                settings=settings,
            )
            for metric, share in ((Metric.PICKUP_P50, 0.5), (Metric.PICKUP_P99, 0.99))
        ]

    async def _enqueue_at_pace(self, enqueue: Callable[[int, int], Awaitable[None]]) -> None:
        begun = time.monotonic()
        for index in range(self.plan.pickup_jobs):
            await asyncio.sleep(begun + index / self.plan.pickup_rate - time.monotonic())
            await enqueue(index, time.monotonic_ns())

    async def _await_drained(self, url: str, ledger: Ledger, crew: Crew, jobs: int) -> float:
        await self._until(lambda: ledger.started() >= jobs, crew, f"{jobs} handlers to start")
        deadline = time.monotonic() + self.plan.patience
        while remaining := await self.contestant.unfinished(url):
            if time.monotonic() > deadline:
                raise StalledError(f"{remaining} of {jobs} jobs were never acknowledged")
            await asyncio.sleep(0.002)
        return time.monotonic() - ledger.first_start_ns() / 1e9

    async def _until(self, reached: Callable[[], bool], crew: Crew, what: str) -> None:
        deadline = time.monotonic() + self.plan.patience
        while not reached():
            crew.check()
            if time.monotonic() > deadline:
                raise StalledError(f"waited {self.plan.patience:.0f} s for {what}\n{crew.words()}")
            await asyncio.sleep(LOOK_SECONDS)

    @contextmanager
    def _crew_at_work(self, url: str, purpose: Purpose, workers: int) -> Iterator[tuple[Ledger, Crew]]:
        with (
            new_ledger(self.folder, self.plan.pickup_jobs) as ledger,
            self.make_crew(url, ledger.path, purpose, workers) as crew,
        ):
            crew.assemble(ledger)
            yield ledger, crew

    def _rate(self, metric: Metric, jobs: int, seconds: float) -> Measurement:
        return Measurement(
            name=self.contestant.name,
            metric=metric,
            value=jobs / seconds,
            unit="jobs/s",
            settings={"jobs": str(jobs), "seconds": f"{seconds:.2f}"},
        )
