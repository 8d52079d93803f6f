"""SIGQUIT and SIGUSR1 to real workers: where they are, whatever they are stuck in."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue, show
from tests.support.waiting import until_sync
from tests.surfaces.conftest import Arrange

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.lifecycle.process.exits import EXIT_OK, EXIT_STACKS

PATIENCE = 60.0
SHOP = """
import asyncio
import hashlib
import re
import sys
import time
from pathlib import Path

from perdure import App

app = App()
begun = Path("begun")


@app.job
async def linger() -> None:
    await waits()


async def waits() -> None:
    begun.touch()
    await asyncio.sleep(600)


@app.job
def linger_in_thread() -> None:
    begun.touch()
    time.sleep(600)


@app.job(isolate=True)
def linger_isolated() -> None:
    begun.touch()
    time.sleep(600)


@app.job
async def block_in_python() -> None:
    begun.touch()
    while True:
        pass


@app.job
async def block_in_sleep() -> None:
    begun.touch()
    time.sleep(600)


@app.job
async def block_in_regex() -> None:
    begun.touch()
    re.match("(a+)+$", "a" * 60 + "b")


@app.job
async def block_in_free_c() -> None:
    begun.touch()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)


@app.job
async def keep_interpreter() -> None:
    begun.touch()
    sum(range(10**12))


@app.job
async def keep_interpreter_briefly() -> None:
    print("printed", file=sys.stdout)
    sum(range(10**8), begun.touch() or 0)  # in one line: a signal may come as soon as the file is there
    time.sleep(600)
"""


class House:
    """One worker of the shop and its standard error."""

    def __init__(self, folder: Path, arrange: Arrange[Any]) -> None:
        self._folder = folder
        self._arrange = arrange
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, kind: str, *words: str) -> JobId:
        """Start a worker, and wait until it is in the handler of a job of this kind."""
        job_id: JobId = self._arrange(lambda store: enqueue(store, kind=kind, args="{}"))
        with (self._folder / "err").open("wb") as err, (self._folder / "out").open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "perdure", "worker", "shop:app", *words],
                cwd=self._folder,
                stdout=out,
                stderr=err,
            )
        until_sync((self._folder / "begun").exists, PATIENCE)
        return job_id

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def send(self, by: signal.Signals) -> None:
        self.process.send_signal(by)

    def told(self) -> str:
        return (self._folder / "err").read_text(errors="replace")

    def printed(self) -> str:
        return (self._folder / "out").read_text()

    def until_told(self, words: str, times: int = 1) -> str:
        try:
            until_sync(lambda: self.told().count(words) >= times, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}; told so far:\n{self.told()[-5000:]}") from None
        return self.told()

    def ask_until_told(self, words: str, times: int) -> None:
        """Ask where it is, and again after a while: one signal may be taken for another that comes with it."""
        asked_at = 0.0

        def ask() -> bool:
            nonlocal asked_at
            if time.monotonic() > asked_at + 3:
                asked_at = time.monotonic()
                self.send(signal.SIGUSR1)
            return self.told().count(words) >= times

        until_sync(ask, PATIENCE)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)


@pytest.fixture
def house(tmp_path: Path, engine_url: str, arrange: Arrange[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.setenv("PERDURE_URL", engine_url)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    house = House(tmp_path, arrange)
    yield house
    house.end()


only_sqlite = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)


def test_c13_sigusr1_prints_all_and_the_worker_goes_on(house: House, arrange: Arrange[Any]) -> None:
    job_id = house.start("linger")
    for time_of in range(1, 20):
        house.send(signal.SIGUSR1)
        told = house.until_told("──── end of process", time_of)
        task = [piece for piece in told.split("\n\n") if f"runs job {job_id} kind linger attempt 1" in piece][-1:]
        if time_of > 1 and "shop.py" in "".join(task):  # it is claimed a moment before its handler begins
            break
    assert f"process {house.process.pid}" in told
    assert re.search(r"worker \S+, perdure \S+, up \d+ s, open", told)
    assert re.search(r"loop promoter: [1-9]\d* ticks, 0 skipped", told)
    assert "thread MainThread" in told
    assert "daemon thread perdure-heartbeat" in told
    assert re.findall(r"shop\.py:\d+ (\w+)", "".join(task)) == ["linger", "waits"], "down to where it waits"
    house.send(signal.SIGTERM)
    house.ask_until_told("──── end of process", time_of + 1)  # while it closes, too
    view: JobView = arrange(lambda store: show(store, job_id))
    assert view.state is JobState.RUNNING


@only_sqlite
def test_c13_sigquit_prints_all_and_ends_with_2(house: House, arrange: Arrange[Any]) -> None:
    """Nothing is closed: the job comes back as that of any worker that died."""
    job_id = house.start("linger_in_thread")
    house.send(signal.SIGQUIT)
    assert house.process.wait(PATIENCE) == EXIT_STACKS == 2
    told = house.told()
    thread = next(piece for piece in told.split("\n\n") if f"runs job {job_id} kind linger_in_thread" in piece)
    assert "time.sleep(600)" in thread
    assert "worker closed" not in told
    view: JobView = arrange(lambda store: show(store, job_id))
    assert view.state is JobState.RUNNING


@only_sqlite
def test_c13_an_isolated_attempt_is_reported_with_its_process(house: House) -> None:
    job_id = house.start("linger_isolated")
    house.send(signal.SIGQUIT)
    assert house.process.wait(PATIENCE) == EXIT_STACKS
    found = re.search(rf"isolated: job {job_id} kind linger_isolated .* in process (\d+)", house.told())
    assert found is not None
    until_sync(lambda: not Path(f"/proc/{found[1]}").exists(), PATIENCE)


@only_sqlite
@pytest.mark.parametrize("kind", ["block_in_python", "block_in_sleep", "block_in_regex", "block_in_free_c"])
def test_c13_a_blocked_event_loop_still_answers_the_signal(house: House, kind: str) -> None:
    job_id = house.start(kind)
    house.send(signal.SIGUSR1)
    told = house.until_told("──── end of process")
    main = next(piece for piece in told.split("\n\n") if piece.startswith("thread MainThread"))
    assert re.search(rf"shop\.py:\d+ {kind}", main)
    assert f"runs job {job_id}" in told
    house.send(signal.SIGQUIT)
    assert house.process.wait(PATIENCE) == EXIT_STACKS


@only_sqlite
def test_c13_the_watchdog_names_the_job_that_blocks_the_loop(house: House) -> None:
    job_id = house.start("block_in_python")
    told = house.until_told("event loop blocked")
    assert f"\njob {job_id} kind block_in_python" in house.until_told(f"\njob {job_id}"), told
    assert re.search(r"shop\.py:\d+ block_in_python", house.told())


@only_sqlite
def test_c13_c_code_that_keeps_the_interpreter_is_reported_when_it_lets_go(house: House) -> None:
    house.start("keep_interpreter_briefly")
    house.send(signal.SIGQUIT)
    assert house.process.wait(PATIENCE) == EXIT_STACKS
    main = next(piece for piece in house.told().split("\n\n") if piece.startswith("thread MainThread"))
    assert re.search(r"shop\.py:\d+ keep_interpreter_briefly\n +sum\(", main)
    assert house.printed() == "printed\n", "what was printed before is not lost"


@only_sqlite
def test_c13_c_code_that_never_lets_go_is_reported_on_sigabrt(house: House) -> None:
    house.start("keep_interpreter")
    house.send(signal.SIGABRT)
    assert house.process.wait(PATIENCE) == -signal.SIGABRT
    assert re.search(r'shop\.py", line \d+ in keep_interpreter', house.told())


@only_sqlite
@pytest.mark.parametrize("kind", ["linger", "keep_interpreter"])
def test_c13_a_supervisor_passes_sigquit_on_and_ends_with_2_soon(house: House, kind: str) -> None:
    house.start(kind, "--processes", "2")
    begun = time.monotonic()
    house.send(signal.SIGQUIT)
    assert house.process.wait(PATIENCE) == EXIT_STACKS
    assert time.monotonic() - begun < 30, "not the time that closing may take"
    assert re.search(rf"shop\.py\W.*{kind}", house.told())


@only_sqlite
def test_c13_a_supervisor_passes_sigusr1_on_to_all(house: House) -> None:
    house.start("linger", "--processes", "2", "--stop-timeout", "0s")
    house.until_told("worker open", 2)
    house.send(signal.SIGUSR1)
    told = house.until_told("──── end of process", 2)
    assert len(set(re.findall(r"──── process (\d+)", told))) == 2
    assert str(house.process.pid) not in re.findall(r"──── process (\d+)", told), "the parent does no work"
    house.send(signal.SIGTERM)
    assert house.process.wait(PATIENCE) == EXIT_OK
