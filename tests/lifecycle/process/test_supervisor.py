"""Several worker processes under one parent: as many as asked for live, and none outlives it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.programs import charge
from tests.support.waiting import is_gone, until

from perdure.errors import SettingsError
from perdure.events import Emitter, Event, WorkerProcessDied, WorkerProcessKilled
from perdure.lifecycle.process.exits import EXIT_FAILED, EXIT_OK, EXIT_USAGE, how_it_ended
from perdure.lifecycle.process.supervisor import Supervisor, is_supervised, supervise

SUPERVISE = """
import sys
from datetime import timedelta
from perdure.lifecycle.process.supervisor import supervise
within, *command = sys.argv[1:]
sys.exit(supervise([], 2, command=command, stop_within=timedelta(seconds=float(within))))
"""


class House:
    """A supervisor in this process and what happened there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: list[Event] = []

    def start(self, manner: str, processes: int, stop_within: float = 30.0) -> asyncio.Task[int]:
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        self.supervisor = Supervisor(command(manner, self._folder), processes, stop_within, emitter)
        return asyncio.create_task(self.supervisor.run())


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
async def parent(tmp_path: Path) -> AsyncIterator[list[Process]]:
    """Supervisors in processes of their own, killed at the end if they still live."""
    parents: list[Process] = []
    yield parents
    for process in parents:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def start_parent(parents: list[Process], manner: str, folder: Path, stop_within: float = 30.0) -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISE, str(stop_within), *command(manner, folder)
    )
    parents.append(process)
    return process


def command(manner: str, folder: Path) -> list[str]:
    return [sys.executable, charge.__file__, manner, str(folder)]


def noted(folder: Path, what: str = "started") -> set[int]:
    return {int(file.stem) for file in folder.glob(f"*.{what}")}


async def noted_by(folder: Path, processes: int, what: str = "started") -> set[int]:
    """The pids of those who noted this, once there are so many."""
    return await until(lambda: pids if len(pids := noted(folder, what)) == processes else None)


async def test_all_run_and_all_stop_in_good_order(house: House, tmp_path: Path) -> None:
    running = house.start("obey", processes=3)
    pids = await noted_by(tmp_path, 3)
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_OK
    assert all(is_gone(pid) for pid in pids)


async def test_one_that_dies_is_replaced_and_its_cause_reported(house: House, tmp_path: Path) -> None:
    running = house.start("obey", processes=2)
    victim = min(await noted_by(tmp_path, 2))
    os.kill(victim, signal.SIGKILL)
    await noted_by(tmp_path, 3)
    [died] = [event for event in house.events if isinstance(event, WorkerProcessDied)]
    assert (died.pid, "SIGKILL" in died.cause) == (victim, True)
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_OK


async def test_one_that_cannot_be_started_now_is_met_with_patience(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refusals = asyncio.create_subprocess_exec, [BlockingIOError(errno.EAGAIN, "no process to spare")]

    async def sometimes(*command: str, **options: Any) -> Process:
        if refusals:
            raise refusals.pop()
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", sometimes)
    running = house.start("obey", processes=2)
    await noted_by(tmp_path, 2)
    [died] = [event for event in house.events if isinstance(event, WorkerProcessDied)]
    assert "no process to spare" in died.cause
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_OK


async def test_one_that_asks_for_a_fresh_process_gets_it_without_a_complaint(house: House, tmp_path: Path) -> None:
    running = house.start("retire once", processes=1)
    await noted_by(tmp_path, 2)
    assert not [event for event in house.events if isinstance(event, WorkerProcessDied)]
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_OK


async def test_one_that_dies_quickly_is_met_with_patience(house: House) -> None:
    running = house.start("fail", processes=1)
    died = await until(lambda: [event for event in house.events if isinstance(event, WorkerProcessDied)][1:])
    assert died[0].wait > 0
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) in {EXIT_OK, EXIT_FAILED}


async def test_a_stop_that_meets_one_before_it_listens_is_a_clean_stop(house: House) -> None:
    running = house.start("sleep", processes=1)
    await until(lambda: house.events)
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_OK


async def test_wrong_arguments_end_everything(house: House) -> None:
    running = house.start("refuse", processes=2)
    assert await asyncio.wait_for(running, 30) == EXIT_USAGE


async def test_one_that_does_not_stop_in_time_is_killed_and_reported(house: House, tmp_path: Path) -> None:
    running = house.start("ignore", processes=1, stop_within=0.3)
    [pid] = await noted_by(tmp_path, 1)
    house.supervisor.stop()
    assert await asyncio.wait_for(running, 30) == EXIT_FAILED
    assert is_gone(pid)
    assert [event.pid for event in house.events if isinstance(event, WorkerProcessKilled)] == [pid]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_to_the_parent_stops_all(parent: list[Process], tmp_path: Path, by: signal.Signals) -> None:
    supervisor = await start_parent(parent, "obey", tmp_path)
    pids = await noted_by(tmp_path, 2)
    supervisor.send_signal(by)
    assert await asyncio.wait_for(supervisor.wait(), 30) == EXIT_OK
    assert all(is_gone(pid) for pid in pids)


async def test_other_signals_are_passed_on_and_stop_nothing(parent: list[Process], tmp_path: Path) -> None:
    supervisor = await start_parent(parent, "obey", tmp_path)
    pids = await noted_by(tmp_path, 2)
    supervisor.send_signal(signal.SIGTSTP)
    assert await noted_by(tmp_path, 2, "SIGTSTP") == pids
    assert not any(is_gone(pid) for pid in pids)


@pytest.mark.parametrize("manner", ["obey", "ignore"])
async def test_none_outlives_a_parent_that_is_killed(parent: list[Process], tmp_path: Path, manner: str) -> None:
    supervisor = await start_parent(parent, manner, tmp_path, stop_within=0.3)
    pids = await noted_by(tmp_path, 2)
    supervisor.kill()
    await until(lambda: all(is_gone(pid) for pid in pids))
    if manner == "ignore":
        assert noted(tmp_path, "SIGTERM") == pids, "each was asked before it was killed"


def test_a_process_without_a_supervisor_knows_it(tmp_path: Path) -> None:
    assert not is_supervised()
    inherited = os.environ | {"PERDURE_SUPERVISOR": "1:30"}
    script = "from perdure.lifecycle.process.supervisor import is_supervised; print(is_supervised())"
    ran = subprocess.run([sys.executable, "-c", script], env=inherited, capture_output=True, timeout=60, check=True)
    assert ran.stdout == b"False\n", "one that only inherited the word is not supervised"


def test_no_processes_is_refused() -> None:
    with pytest.raises(SettingsError, match="processes must be at least 1"):
        supervise([], 0, stop_within=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "ended with exit code 3"),
        (-9, "was killed by SIGKILL (perhaps by the kernel's out-of-memory killer)"),
        (-15, "was killed by SIGTERM"),
        (-99, "was killed by signal 99"),
    ],
)
def test_endings_in_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words
