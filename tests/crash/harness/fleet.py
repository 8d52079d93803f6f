"""Real processes, started, killed, stopped and woken by a test; none outlives it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

import apsw
from tests.crash.harness.ledger import Book, Ledger, Run
from tests.crash.programs.jobs import build_app
from tests.support.builders.jobs import numbered_id
from tests.support.waiting import is_stopped, processor_time, until_sync, while_progressing

ROOT: Final = Path(__file__).parents[3]
PATIENCE: Final = 30.0
Found = TypeVar("Found")


class Member:
    """One process."""

    def __init__(self, name: str, program: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.name = name
        self.program = program
        self.pid = process.pid
        self.killed_at = 0
        self.is_expected_to_end = False
        self.stopped = False
        self._process = process
        self._errors = errors

    @property
    def runs(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill it with -9, and note when."""
        self.killed_at = time.monotonic_ns()
        self.is_expected_to_end = True
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Put it to sleep in the middle of whatever it does; it stands still when this returns.

        On a busy machine its threads go on for a while after the signal: one of them could still take a lock.
        """
        self._process.send_signal(signal.SIGSTOP)
        until_sync(lambda: is_stopped(self.pid), PATIENCE)
        self.stopped = True

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)
        self.stopped = False

    def end(self) -> int:
        """Ask it to close in good order; its exit code."""
        if self.stopped:
            self.wake()
        self.is_expected_to_end = True
        self._process.terminate()
        while_progressing(lambda: not self.runs, self.used, PATIENCE)
        return self._process.wait()

    def used(self) -> int:
        """What it has used of the processors so far."""
        return processor_time(self.pid)

    def last_words(self) -> str:
        """What it wrote to stderr."""
        return self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]


class Fleet:
    """The processes of one test, and the ledger that they keep."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.ledger = folder / "ledger"
        self.members: list[Member] = []
        self._pen = Ledger(self.ledger)
        self.app = build_app(url, self._pen, "test")

    def enqueue(self, kind: str, number: int, **arguments: object) -> str:
        """Enqueue the job of this number from the test itself; its id."""
        job = numbered_id(number)
        self._pen.note("want", job, "test")
        handle = self.app.job_named(kind).using(id=job).enqueue_sync(**arguments)
        self._pen.note("enqueued", job, handle.intake)
        return job

    def enqueue_hold(self, number: int) -> str:
        """Enqueue a job that runs until its process is released; its id."""
        return self.enqueue("hold", number, folder=str(self.folder))

    def worker(self, name: str, *manners: str) -> Member:
        """Start a worker: `quick` and `calm` have a lease of 2 s.

        One that is `unfenced` acknowledges without its token, one that is `counting` has tokens that may come again.
        """
        return self._start("worker", name, manners)

    def producer(self, name: str, number: int) -> Member:
        """Start a producer, or start it again under the same name."""
        return self._start("producer", name, (str(number),))

    def scheduled(self, name: str, clock: Path) -> Member:
        """Start a worker that has schedules, on the clock of this file."""
        return self._start("scheduled", name, (str(clock),))

    def gated(self, name: str) -> Member:
        """Start a worker whose jobs pass gates."""
        return self._start("gated", name, ())

    def opened(self, *members: Member) -> None:
        """Wait until these are at work."""
        for member in members:
            self.wait(partial(self._is_open, member))

    def book(self) -> Book:
        """The ledger as it stands."""
        return Book.read(self.ledger)

    def started(self, job: str, by: Member) -> Run:
        """Wait until a job runs in this process; its start."""
        return self.wait(lambda: next((run for run in self.book().starts if (run.job, run.pid) == (job, by.pid)), None))

    def release(self, *names: str) -> None:
        """Open the gate for the `hold` jobs of the processes of these names."""
        for name in names:
            (self.folder / f"release-{name}").touch()

    def wait(self, condition: Callable[[], Found | None], within: float = PATIENCE) -> Found:
        """Wait for something, as long as only killed processes end and at least one makes progress."""

        def look() -> Found | None:
            ended = [member.name for member in self.members if not (member.runs or member.is_expected_to_end)]
            assert not ended, f"{ended} ended by themselves"
            return condition()

        try:
            return while_progressing(look, self._progress, within)
        except AssertionError as error:
            words = "\n".join(f"{member.name} {member.pid}: {member.last_words()}" for member in self.members)
            raise AssertionError(f"{error}\n{words}\n{self.ledger.read_text()[-3000:]}") from None

    def _progress(self) -> object:
        return self.ledger.stat().st_size, [member.used() for member in self.members]

    def _is_open(self, member: Member) -> bool:
        return member.pid in self.book().opened

    def _start(self, program: str, name: str, arguments: tuple[str, ...]) -> Member:
        errors = self.folder / f"{name}-{len(self.members)}.err"
        with errors.open("wb") as stderr:
            module = f"tests.crash.programs.{program}"
            process = subprocess.Popen(
                [sys.executable, "-m", module, self.url, str(self.ledger), name, *arguments],
                cwd=ROOT,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )
        member = Member(name, program, process, errors)
        self.members.append(member)
        return member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for member in self.members:
            if member.runs:
                member.kill()
        self.app.close_sync()
        self._pen.close()


def stop_between_writes(member: Member, url: str) -> None:
    """Put a process to sleep, but not while it holds the write lock of an SQLite file, or all would sleep with it."""
    for _ in range(100):
        member.stop()
        if is_writable(url):
            return
        member.wake()
        until_sync(lambda: is_writable(url), PATIENCE)  # it needs a moment to come to the end of its write
    raise AssertionError(f"{member.name} writes without end")


def is_writable(url: str) -> bool:
    """Whether no process holds the write lock of an SQLite file; a PostgreSQL database has none."""
    if not url.startswith("sqlite"):
        return True
    link = apsw.Connection(urlsplit(url).path[1:])
    try:
        link.set_busy_timeout(200)
        link.execute("BEGIN IMMEDIATE")
        link.execute("ROLLBACK")
    except apsw.BusyError:
        return False
    finally:
        link.close()
    return True
