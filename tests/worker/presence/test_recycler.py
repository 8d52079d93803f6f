"""A worker that has done its share closes in good order, and a fresh process goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.support.builders.jobs import a_job
from tests.support.waiting import text_of, until

from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.jobs.states import JobState
from perdure.errors import SettingsError
from perdure.events import Emitter, Event, WorkerRecycled
from perdure.kinds.kind import Registry
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.worker.presence.recycler import Recycler
from perdure.worker.settings import WorkerSettings
from perdure.worker.wiring.worker import build_worker

MIB = 1024 * 1024
JOBS_PY = """
import asyncio, os
from perdure import App

app = App()

@app.job
async def note_pid(note: str) -> None:
    await asyncio.sleep(0.02)
    with open(note, "a") as file:
        file.write(f"{os.getpid()}\\n")
"""


async def tick(settings: WorkerSettings, *, finished: int, resident: int = 0) -> list[str]:
    """What a recycler asks for in this situation."""
    asked: list[str] = []
    recycler = Recycler(Emitter(), settings, lambda: finished, asked.append, lambda: resident)
    await recycler.tick()
    return asked


async def test_enough_jobs_are_a_reason() -> None:
    settings = WorkerSettings(recycle_after_jobs=100)
    assert await tick(settings, finished=99) == []
    assert await tick(settings, finished=100) == ["100 jobs done, 100 allowed"]


async def test_too_much_memory_is_a_reason() -> None:
    settings = WorkerSettings(recycle_above_mb=200)
    assert await tick(settings, finished=10_000, resident=200 * MIB) == []
    assert await tick(settings, finished=0, resident=201 * MIB) == ["201 MB in use, 200 allowed"]


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"worker\.recycle_after_jobs must be at least 1"):
        WorkerSettings(recycle_after_jobs=0)
    with pytest.raises(SettingsError, match=r"worker\.recycle_above_mb must be at least 1"):
        WorkerSettings(recycle_above_mb=0)


async def test_a_worker_above_its_limit_closes_and_says_so(tmp_path: Path) -> None:
    store = store_for(f"sqlite:///{tmp_path / 'perdure.db'}")
    await store.open()
    await store.migrate()
    events: list[Event] = []
    emitter, kinds = Emitter(), Registry()
    emitter.subscribe(events.append)
    worker = build_worker(
        store=store, kinds=kinds, settings=WorkerSettings(recycle_above_mb=1), emitter=emitter, clock=SystemClock()
    )
    await asyncio.wait_for(worker.run(), 30)
    await store.close()
    assert worker.recycled
    [recycled] = [event for event in events if isinstance(event, WorkerRecycled)]
    assert recycled.because.endswith("1 allowed")


async def test_fresh_processes_share_the_work_and_no_job_is_lost_or_run_twice(tmp_path: Path) -> None:
    """`perdure worker --processes 2 --recycle-after-jobs 10`, from the first job to a clean stop."""
    (tmp_path / "jobs.py").write_text(JOBS_PY, encoding="utf-8")
    url, note = f"sqlite:///{tmp_path / 'perdure.db'}", tmp_path / "note"
    store = store_for(url)
    await store.open()
    await store.migrate()
    jobs = 120
    await store.insert([a_job(kind="note_pid", args=f'{{"note":"{note}"}}') for _ in range(jobs)])
    options = ["--processes", "2", "--recycle-after-jobs", "10", "--concurrency", "1"]
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure", "worker", "jobs:app", *options),
        cwd=tmp_path,
        env=os.environ | {"PERDURE_URL": url},
    )
    try:
        await until(lambda: text_of(note).count("\n") == jobs, within=200)
        await until_recorded(store, jobs)
    finally:
        parent.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(parent.wait(), 60)
        await store.close()
    assert code == 0
    pids = text_of(note).split()
    assert len(pids) == jobs
    assert len(set(pids)) > 2, "no process did more than its share"


async def until_recorded(store: Store, jobs: int) -> None:
    done = JobFilter(states=frozenset({JobState.SUCCEEDED}))
    async with asyncio.timeout(30):
        while len(await store.jobs(done, Page(jobs))) < jobs:
            await asyncio.sleep(0.01)
