"""`perdure worker` and `perdure up`, as real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.support.builders.jobs import a_job, enqueue, show
from tests.surfaces.conftest import Arrange, run_cli

from perdure.app.connect import store_for
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

PATIENCE = 30.0
SHOP = """
import asyncio
from perdure import App

app = App()

@app.job
async def greet(name: str) -> str:
    return f"hello {name}"

@app.job
async def linger() -> None:
    await asyncio.sleep(600)

@app.job
async def fail() -> None:
    raise ValueError("\\x1b]0;owned\\x07 no\\nsuch host")
"""


class Processes:
    """Starts command lines in a folder of their own, and ends those that a test left running."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        with (self._folder / f"log-{len(self._started)}").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "perdure", *words],
                cwd=self._folder,
                env=os.environ | {"PERDURE_URL": self._url},
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
            )
        self._started.append(process)
        return process

    def log(self, process: subprocess.Popen[str]) -> str:
        return (self._folder / f"log-{self._started.index(process)}").read_text()

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)


@contextmanager
def open_shop(folder: Path, url: str) -> Iterator[Processes]:
    (folder / "shop.py").write_text(SHOP)
    started = Processes(folder, url)
    yield started
    started.end()


@pytest.fixture
def processes(tmp_path: Path, engine_url: str) -> Iterator[Processes]:
    with open_shop(tmp_path, engine_url) as started:
        yield started


@pytest.fixture
def processes_on_nothing(tmp_path: Path, empty_url: str) -> Iterator[Processes]:
    """The same on a database that was never migrated."""
    with open_shop(tmp_path, empty_url) as started:
        yield started


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The app within reach of this process; nothing of it, nor of its log, is left behind."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    sys.modules.pop("shop", None)


def until(url: str, done: Callable[[Store], Awaitable[bool]], process: subprocess.Popen[str]) -> None:
    """Look at the database until this holds, the process ends, or patience does."""

    async def watch() -> None:
        store = store_for(url)
        await store.open()
        try:
            deadline = time.monotonic() + PATIENCE
            while not await done(store):
                assert process.poll() is None, "the process ended"
                assert time.monotonic() < deadline, "it took too long"
                await asyncio.sleep(0.02)
        finally:
            await store.close()

    asyncio.run(watch())


def stands(job_id: JobId, state: JobState) -> Callable[[Store], Awaitable[bool]]:
    async def looked(store: Store) -> bool:
        return (await show(store, job_id)).state is state

    return looked


@pytest.mark.parametrize("command", ["worker", "up"])
def test_it_runs_jobs_and_ends_well_on_sigterm(
    processes: Processes, arrange: Arrange[Any], engine_url: str, command: str
) -> None:
    job_id = arrange(enqueue)
    process = processes.start(command, "shop:app", "--json")
    until(engine_url, stands(job_id, JobState.SUCCEEDED), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK
    events = [json.loads(line)["event"] for line in processes.log(process).splitlines()]
    assert ("desk opened" in events) is (command == "up")
    assert [event for event in events if event != "desk opened"][:2] == ["worker starts", "✿ worker open"]
    assert events[-1] == "❀ worker closed"
    assert [event for event in events if event.startswith("job ")] == ["job started", "job succeeded"]


def test_c1_a_second_signal_hurries_and_costs_no_attempt(
    processes: Processes, arrange: Arrange[Any], engine_url: str
) -> None:
    job_id = arrange(lambda store: enqueue(store, kind="linger", args="{}"))
    process = processes.start("worker", "shop:app", "--stop-timeout", "10m")
    until(engine_url, stands(job_id, JobState.RUNNING), process)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)  # sooner, a second signal would count as the first
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == Exit.OK
    view: JobView = arrange(lambda store: show(store, job_id))
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 0, 0)


def test_the_console_log_cannot_be_written_by_a_job(
    processes: Processes, arrange: Arrange[Any], engine_url: str
) -> None:
    job_id = arrange(lambda store: enqueue(store, kind="fail", args="{}"))
    process = processes.start("worker", "shop:app")
    until(engine_url, stands(job_id, JobState.RETRYING), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK
    log = processes.log(process)
    assert "owned" in log
    assert not {"\x1b", "\x07"} & set(log)
    assert not any(line.startswith("such host") for line in log.splitlines())


def test_several_processes_under_one_parent(processes: Processes, arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.check_schema())
    process = processes.start("worker", "shop:app", "--processes", "2", "--name", "shop")

    async def both_live(store: Store) -> bool:
        names = {worker.name for worker in await store.workers() if worker.dead_at is None}
        return len(names) == 2 and all(name.startswith("shop:") for name in names)

    until(engine_url, both_live, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK


def test_a_worker_is_replaced_after_so_many_jobs(processes: Processes, arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.insert([a_job() for _ in range(20)]))
    process = processes.start("worker", "shop:app", "--recycle-after-jobs", "5", "--concurrency", "5")

    async def replaced(store: Store) -> bool:
        workers = await store.workers()
        return len(workers) > 1 and any(worker.dead_at is None for worker in workers)

    until(engine_url, replaced, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--lease", "5s"], "--lease"),
        (["--lease", "soon"], "--lease"),
        (["--stop-timeout", "-1"], "--stop-timeout"),
        (["--concurrency", "0"], "--concurrency"),
        (["--threads", "0"], "--threads"),
        (["--processes", "0"], "--processes"),
        (["--queues", "mail:x"], "--queues"),
        (["--queues", "mail,mail"], "--queues"),
        (["--queues", "mail@0"], "--queues"),
        (["--queues", "mail:0,default"], "--queues"),
        (["--name", "", "--lease", "5s"], "--name"),
        (["--recycle-after-jobs", "0"], "--recycle-after-jobs"),
        (["--log-format", "xml"], "--log-format"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_bad_settings_are_refused_by_name(options: list[str], field: str) -> None:
    answer = run_cli("worker", "shop:app", *options, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, field)


def test_no_migrate_leaves_the_schema_alone(processes_on_nothing: Processes) -> None:
    process = processes_on_nothing.start("worker", "shop:app", "--no-migrate", "--json")
    assert process.wait(PATIENCE) == Exit.FAILED
    assert "perdure migrate" in processes_on_nothing.log(process)


def test_the_apps_own_settings_hold_where_no_option_speaks(
    processes: Processes, tmp_path: Path, arrange: Arrange[Any], engine_url: str
) -> None:
    own = 'App(worker=WorkerSettings(name="own", queues="mail:2,reports", concurrency=7, missing_handler="dead"))'
    (tmp_path / "own.py").write_text(f"from perdure import App, WorkerSettings\n\napp = {own}\n")
    job_id = arrange(lambda store: enqueue(store, queue="reports", kind="unheard of"))
    process = processes.start("worker", "own:app", "--concurrency", "5")
    until(engine_url, stands(job_id, JobState.DEAD), process)
    [worker] = arrange(lambda store: store.workers())
    assert (worker.name, worker.queues, worker.concurrency) == ("own", ("mail", "reports", "perdure-alerts"), 5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == Exit.OK
