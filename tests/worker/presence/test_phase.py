"""A quiet worker claims nothing and lets the rest run; what a worker is about can be seen."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.builders.jobs import enqueue, show
from tests.support.waiting import PATIENCE, until
from tests.support.working import Shift, at_work, found, seen

from perdure import App, JobState
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.operate.audit import By
from perdure.domain.worker import Phase, WorkerView
from perdure.events import StoreTrouble, WorkerLost, WorkerLoud, WorkerQuiet
from perdure.lifecycle.process import supervisor
from perdure.storage.port import Store
from perdure.worker.presence.phase import BY_OPERATOR, BY_SIGNAL

SHOP = """
import asyncio
from perdure import App

app = App()

@app.job
async def greet(name: str) -> str:
    return f"hello {name}"
"""


def shop() -> tuple[App, asyncio.Event]:
    """An app whose one kind of job waits until it is let go."""
    app, free = App("sqlite:///unused.db"), asyncio.Event()

    @app.job
    async def greet(name: str) -> str:
        await free.wait()
        return name

    return app, free


async def living(store: Store, *phases: Phase) -> list[WorkerView]:
    """The living workers, once they are in these phases, in whatever order."""

    async def look() -> list[WorkerView] | None:
        workers = [worker for worker in await store.workers() if worker.dead_at is None]
        return workers if sorted(worker.phase for worker in workers) == sorted(phases) else None

    return await found(look)


async def a_look(shift: Shift) -> None:
    """Let the worker look for work, as often as it takes to find some."""
    for _ in range(5):
        shift.worker.wake()
        await asyncio.sleep(0.02)


async def test_c1_a_quiet_worker_claims_nothing_and_lets_the_rest_run(real_time_store: Store) -> None:
    app, free = shop()
    async with at_work(real_time_store, app) as shift:
        first = await enqueue(real_time_store)
        await seen(real_time_store, first, JobState.RUNNING)
        shift.worker.quiet(BY_SIGNAL)
        await shift.worker._parts.fetcher.drain()  # a claim may have been under way
        second = await enqueue(real_time_store)
        await a_look(shift)
        free.set()
        await seen(real_time_store, first, JobState.SUCCEEDED)
        assert (await show(real_time_store, second)).state is JobState.READY
        shift.worker.loud(BY_SIGNAL)
        await seen(real_time_store, second, JobState.SUCCEEDED)
        assert [(event.because, event.running) for event in shift.told(WorkerQuiet)] == [(BY_SIGNAL, 1)]
        assert [event.because for event in shift.told(WorkerLoud)] == [BY_SIGNAL]


async def test_c1_an_operator_makes_a_worker_quiet_and_a_signal_does_not_lift_that(real_time_store: Store) -> None:
    app, free = shop()
    free.set()
    async with at_work(real_time_store, app) as shift:
        [worker] = await living(real_time_store, Phase.OPEN)
        shift.worker.quiet(BY_SIGNAL)
        await real_time_store.quiet([worker.id], By("ops"), quiet=True)
        await until(lambda: shift.worker._parts.phase.is_quiet(BY_OPERATOR))
        shift.worker.loud(BY_SIGNAL)
        job_id = await enqueue(real_time_store)
        await a_look(shift)
        assert (await show(real_time_store, job_id)).state is JobState.READY
        assert shift.told(WorkerLoud) == []
        await real_time_store.quiet([worker.id], By("ops"), quiet=False)
        await seen(real_time_store, job_id, JobState.SUCCEEDED)
        assert [event.because for event in shift.told(WorkerLoud)] == [BY_OPERATOR]


async def test_a_worker_that_must_begin_again_stays_as_quiet_as_it_was_asked_to_be(real_time_store: Store) -> None:
    app, free = shop()
    free.set()
    async with at_work(real_time_store, app, heartbeat="50ms", lease="1s") as shift:
        [worker] = await living(real_time_store, Phase.OPEN)
        await real_time_store.quiet([worker.id], By("ops"), quiet=True)
        await living(real_time_store, Phase.QUIET)
        await real_time_store.retire(worker.id)
        [again] = await living(real_time_store, Phase.QUIET)
        assert again.id != worker.id
        assert len(shift.told(WorkerLost)) == 1
        assert await real_time_store.wants_quiet(again.id)
        assert shift.told(WorkerLoud) == []


async def test_c1_what_a_worker_is_about_can_be_seen(real_time_store: Store) -> None:
    app, free = shop()
    async with at_work(real_time_store, app, stop_timeout="30s") as shift:
        await living(real_time_store, Phase.OPEN)
        shift.worker.quiet(BY_SIGNAL)
        await living(real_time_store, Phase.QUIET)
        shift.worker.loud(BY_SIGNAL)
        await living(real_time_store, Phase.OPEN)
        await seen(real_time_store, await enqueue(real_time_store), JobState.RUNNING)
        shift.worker.stop()
        await living(real_time_store, Phase.CLOSING)
        free.set()


async def test_c2_a_worker_that_takes_up_work_step_by_step_says_so(real_time_store: Store) -> None:
    app, _ = shop()
    async with at_work(real_time_store, app, slow_start="1h", concurrency=10) as shift:
        await living(real_time_store, Phase.OPENING)
        shift.worker.quiet(BY_SIGNAL)
        await living(real_time_store, Phase.QUIET)


class Mute:
    """A store that refuses to record the phase of a worker, as long as the test wants it so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refused = 0
        self.is_mute = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        if self.is_mute:
            self.refused += 1
            raise OSError("no file to spare")
        await self._store.report(worker_id, phase)


async def test_a_failed_report_harms_nothing_and_is_made_up_for(real_time_store: Store) -> None:
    app, free = shop()
    free.set()
    mute = Mute(real_time_store)
    async with at_work(cast("Store", mute), app) as shift:
        await seen(real_time_store, await enqueue(real_time_store), JobState.SUCCEEDED)
        shift.worker.quiet(BY_SIGNAL)
        mute.is_mute = False
        await living(real_time_store, Phase.QUIET)
        assert mute.refused >= 1
        assert shift.told(StoreTrouble) == []


@pytest.fixture
def processes(tmp_path: Path, engine_url: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`perdure worker` with one process and with two under a supervisor; killed at the end if they still live."""
    (tmp_path / "shop.py").write_text(SHOP)
    started = [start(tmp_path, engine_url), start(tmp_path, engine_url, "--processes", "2")]
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)


def start(folder: Path, url: str, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "shop:app", *options],
        cwd=folder,
        env=os.environ | {"PERDURE_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def test_c1_sigtstp_makes_real_workers_quiet_and_sigcont_lifts_that(
    processes: list[subprocess.Popen[bytes]], real_time_store: Store
) -> None:
    await living(real_time_store, *[Phase.OPEN] * 3)
    tell(processes, signal.SIGTSTP)
    quiet = await living(real_time_store, *[Phase.QUIET] * 3)
    victim = next(worker for worker in quiet if worker.process.pid not in {one.pid for one in processes})
    os.kill(victim.process.pid, signal.SIGKILL)
    await found(lambda: is_replaced(real_time_store, victim))
    job_id = await enqueue(real_time_store)
    assert (await show(real_time_store, job_id)).state is JobState.READY
    tell(processes, signal.SIGCONT)
    await living(real_time_store, *[Phase.OPEN] * 3)
    await seen(real_time_store, job_id, JobState.SUCCEEDED)
    tell(processes, signal.SIGTSTP)
    tell(processes, signal.SIGTERM)
    assert [await asyncio.to_thread(process.wait, PATIENCE) for process in processes] == [0, 0]


async def is_replaced(store: Store, victim: WorkerView) -> bool:
    return victim.id not in {worker.id for worker in await living(store, *[Phase.QUIET] * 3)}


def tell(processes: list[subprocess.Popen[bytes]], by: signal.Signals) -> None:
    for process in processes:
        process.send_signal(by)


@pytest.mark.parametrize(("orders", "quiet"), [("{parent}:5", False), ("{parent}:5:quiet", True), ("1:5:quiet", False)])
def test_a_process_begins_as_quiet_as_its_supervisor_is(
    monkeypatch: pytest.MonkeyPatch, orders: str, quiet: bool
) -> None:
    monkeypatch.setenv("PERDURE_SUPERVISOR", orders.format(parent=os.getppid()))
    assert supervisor.begins_quiet() is quiet
