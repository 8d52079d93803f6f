"""A deploy in the middle of the day: every worker is replaced in turn under load, and no job suffers from it (G9)."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.crash.harness.fleet import ROOT
from tests.support.builders.jobs import enqueue
from tests.support.waiting import PATIENCE, text_of
from tests.support.working import found

from perdure import JobState, JobView
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

KINDS: Final = {"stroll": 10, "march": 6, "toil": 6, "toil_apart": 1}
PAUSE_BETWEEN_JOBS: Final = 0.03


class Deployment:
    """`perdure worker` processes of one app on one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.ledger = folder / "ledger"
        self._folder = folder
        self._environment = os.environ | {"PERDURE_URL": url, "DEPLOY_LEDGER": str(self.ledger)}
        self._started: list[subprocess.Popen[bytes]] = []
        self.exits: list[int] = []

    async def start(self, store: Store) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it is open."""
        process = self._start()

        async def is_open() -> bool:
            assert process.poll() is None, self.log(process)
            return process.pid in {worker.process.pid for worker in await store.workers()}

        await found(is_open)
        return process

    def _start(self) -> subprocess.Popen[bytes]:
        with (self._folder / f"log-{len(self._started)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "perdure", "worker", "tests.crash.programs.deployed:app"],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._started.append(process)
        return process

    async def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Tell a worker to stop, and wait until it has."""
        process.terminate()
        self.exits.append(await asyncio.to_thread(process.wait, PATIENCE))
        assert self.exits[-1] == 0, self.log(process)

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """What a worker wrote."""
        return text_of(self._folder / f"log-{self._started.index(process)}")[-3000:]

    def discard(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)


@pytest.fixture
def deployment(engine_url: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(engine_url, tmp_path)
    yield deployment
    deployment.discard()


async def keep_enqueueing(store: Store, over: asyncio.Event) -> list[JobId]:
    """Enqueue jobs of all kinds, of one to eight steps, until it is over; all of them."""
    chance = random.Random(9)  # noqa: S311 - the same load every time
    kinds, weights = list(KINDS), list(KINDS.values())
    jobs = []
    while not over.is_set():
        [kind] = chance.choices(kinds, weights)
        arguments = {"steps": chance.randint(1, 8), "pause": chance.uniform(0.01, 0.25)}
        jobs.append(await enqueue(store, kind=kind, args=msgspec.json.encode(arguments).decode()))
        await asyncio.sleep(PAUSE_BETWEEN_JOBS)
    return jobs


async def deploy(store: Store, deployment: Deployment, workers: int, rounds: int) -> list[JobId]:
    """Replace every worker in turn, round by round, while jobs keep coming; all of them."""
    over = asyncio.Event()
    running = [await deployment.start(store) for _ in range(workers)]
    load = asyncio.create_task(keep_enqueueing(store, over))
    for _ in range(rounds):
        for place, old in enumerate(running):
            running[place], _ = await asyncio.gather(deployment.start(store), deployment.stop(old))
    over.set()
    jobs = await load
    await found(lambda: is_idle(store))
    for process in running:
        await deployment.stop(process)
    return jobs


async def is_idle(store: Store) -> bool:
    return all(count.state in FINAL or not count.jobs for count in await store.counts())


async def check(store: Store, deployment: Deployment, jobs: list[JobId]) -> None:
    """Jobs lost 0, attempts spent 0, finished stretches run again 0, every exit 0."""
    assert set(deployment.exits) == {0}
    views: dict[JobId, JobView] = {}
    for first in range(0, len(jobs), 500):
        ids = tuple(jobs[first : first + 500])
        views |= {view.id: view for view in await store.jobs(JobFilter(ids=ids), Page(500))}
    lost = [job for job in jobs if job not in views or views[job].state is not JobState.SUCCEEDED]
    assert lost == []
    spent = [view.id for view in views.values() if view.failures or view.crashes]
    assert spent == []
    kept, ends = set(), Counter[str]()
    for line in text_of(deployment.ledger).splitlines():
        what, job, *step = line.split()
        if what == "end":
            ends[job] += 1
        elif what == "kept":
            kept.add((job, *step))
        else:
            assert (job, *step) not in kept, f"step {step} of job {job} was finished, and began again"
    assert ends == Counter(jobs)
    assert [worker.name for worker in await store.workers() if worker.dead_at is None] == []


async def test_g9_a_rolling_deploy_costs_no_job_anything(real_time_store: Store, deployment: Deployment) -> None:
    jobs = await deploy(real_time_store, deployment, workers=2, rounds=1)
    await check(real_time_store, deployment, jobs)
    assert len(deployment.exits) == 4
    begun = Counter(line.split()[1] for line in text_of(deployment.ledger).splitlines() if line.startswith("begin"))
    assert len(begun) > 20, "there was load"


@pytest.mark.proof
async def test_g9_many_rolling_deploys_cost_no_job_anything(real_time_store: Store, deployment: Deployment) -> None:
    jobs = await deploy(real_time_store, deployment, workers=3, rounds=8)
    await check(real_time_store, deployment, jobs)
    assert len(jobs) > 200, "there was load"
