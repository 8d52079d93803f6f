"""A worker process outlives what handlers do to it, loses and doubles nothing, and ends when it is told to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue, show
from tests.surfaces.cli.workers.test_worker import PATIENCE, Processes, stands, until
from tests.surfaces.conftest import Arrange

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

ODD = """
import asyncio, os, time
from pathlib import Path
from perdure import App

app = App()

@app.job
async def greet(name: str) -> None:
    with Path("greeted").open("a") as greeted:
        greeted.write(f"{name}\\n")

@app.job
async def interrupts() -> None:
    raise KeyboardInterrupt

@app.job
async def never_ends() -> None:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@app.job
async def spins() -> None:
    while True:
        pass

@app.job
async def sleeps_on_the_loop() -> None:
    time.sleep(600)

@app.job
async def blocks_a_thread() -> None:
    await asyncio.to_thread(time.sleep, 600)

@app.job
async def forks() -> None:
    if os.fork() == 0:
        os.execv("/no/such/program", ["no"])

@app.job
def forks_in_a_thread() -> None:
    if os.fork() == 0:
        os.execv("/no/such/program", ["no"])

@app.job
async def forks_and_waits() -> None:
    if os.fork() == 0:
        await asyncio.sleep(600)
"""


@pytest.fixture
def processes(tmp_path: Path, engine_url: str) -> Iterator[Processes]:
    (tmp_path / "odd.py").write_text(ODD)
    started = Processes(tmp_path, engine_url)
    yield started
    started.end()


async def odd_and_greetings(store: Store, kind: str) -> tuple[JobId, list[JobId]]:
    odd = await enqueue(store, kind=kind, args="{}")
    return odd, [await enqueue(store, args=f'{{"name": "{n}"}}') for n in range(5)]


async def all_shown(store: Store, job_ids: list[JobId]) -> list[JobView]:
    return [await show(store, job_id) for job_id in job_ids]


def test_an_interrupt_that_a_handler_raises_itself_fails_its_attempt_and_nothing_else(
    processes: Processes, arrange: Arrange[Any], engine_url: str
) -> None:
    odd, greetings = arrange(lambda store: odd_and_greetings(store, "interrupts"))
    process = processes.start("worker", "odd:app")
    until(engine_url, stands(odd, JobState.RETRYING), process)
    for greeting in greetings:
        until(engine_url, stands(greeting, JobState.SUCCEEDED), process)
    assert {view.failures for view in arrange(lambda store: all_shown(store, greetings))} == {0}
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK


@pytest.mark.parametrize("kind", ["never_ends", "blocks_a_thread"])
def test_c1_what_ignores_its_end_keeps_no_closed_worker_from_ending(
    processes: Processes, arrange: Arrange[Any], engine_url: str, kind: str
) -> None:
    odd = arrange(lambda store: enqueue(store, kind=kind, args="{}"))
    process = processes.start("worker", "odd:app", "--stop-timeout", "0s")
    until(engine_url, stands(odd, JobState.RUNNING), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK
    view = arrange(lambda store: show(store, odd))
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 0, 0)
    assert "ended while something still ran in it" in processes.log(process)


@pytest.mark.parametrize("kind", ["spins", "sleeps_on_the_loop"])
def test_c1_a_worker_whose_loop_is_blocked_for_good_ends_all_the_same(
    processes: Processes, arrange: Arrange[Any], engine_url: str, kind: str
) -> None:
    """It cannot close, so the next process on this host finds it dead, and rescues its job."""
    odd = arrange(lambda store: enqueue(store, kind=kind, args="{}"))
    process = processes.start("worker", "odd:app", "--stop-timeout", "0s")
    until(engine_url, stands(odd, JobState.RUNNING), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.FAILED
    assert "the event loop was blocked past the stop timeout" in processes.log(process)


@pytest.mark.parametrize("kind", ["forks", "forks_in_a_thread", "forks_and_waits"])
def test_g2_a_forked_child_that_comes_back_from_its_handler_runs_no_job_a_second_time(
    processes: Processes, arrange: Arrange[Any], engine_url: str, tmp_path: Path, kind: str
) -> None:
    odd, greetings = arrange(lambda store: odd_and_greetings(store, kind))
    process = processes.start("worker", "odd:app")
    for job_id in (odd, *greetings):
        until(engine_url, stands(job_id, JobState.SUCCEEDED), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK
    assert "its child came back into the worker" in processes.log(process)
    assert sorted((tmp_path / "greeted").read_text().split()) == [str(n) for n in range(5)]
