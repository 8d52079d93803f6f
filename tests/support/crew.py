"""Four processes that do what a test asks, at the same instant.

They are started once for a test run (`spawn`: nothing is inherited) and used again by each test that needs real
concurrency. Every wait has a limit: a task that hangs fails its test and takes its process with it.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier
from typing import Any, Final

SIZE: Final = 4
PATIENCE: Final = 60.0

Ready = Callable[[], None]
_SPAWN: Final = multiprocessing.get_context("spawn")


class Crew:
    """Four processes and the barrier between them."""

    def __init__(self) -> None:
        self._hire()

    def together(self, task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run `task(ready, *arguments)` in each process, with four sets of arguments; answer in their order.

        A task calls `ready()` when it has prepared itself, and goes on when all four have.
        """
        deadline = time.monotonic() + PATIENCE
        for (_, line), given in zip(self._members, arguments, strict=True):
            line.send((task, given))
        answers = [_answer(line, deadline) for _, line in self._members]
        if troubles := [trouble for _, trouble in answers if trouble]:
            self.dismiss()
            self._hire()  # a crew that has failed once is not trusted again
            raise AssertionError("\n".join(troubles))
        return [value for value, _ in answers]

    def dismiss(self) -> None:
        """End the processes."""
        for process, line in self._members:
            line.close()
            process.kill()
            process.join(PATIENCE)
            process.close()

    def _hire(self) -> None:
        self._barrier = _SPAWN.Barrier(SIZE)
        self._members = [_enlist(self._barrier) for _ in range(SIZE)]


def _enlist(barrier: Barrier) -> tuple[SpawnProcess, Connection]:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(theirs, barrier), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _answer(line: Connection, deadline: float) -> tuple[Any, str | None]:
    if not line.poll(max(deadline - time.monotonic(), 0)):
        return None, "a process did not answer in time"
    try:
        value, trouble = line.recv()
    except (EOFError, ConnectionError):
        return None, "a process died"
    return value, trouble


def _serve(line: Connection, barrier: Barrier) -> None:
    while True:
        try:
            task, given = line.recv()
        except EOFError:
            return
        try:
            line.send((task(lambda: barrier.wait(PATIENCE) and None, *given), None))
        except Exception:  # noqa: BLE001 - whatever went wrong is told to the test
            barrier.abort()
            line.send((None, traceback.format_exc()))
