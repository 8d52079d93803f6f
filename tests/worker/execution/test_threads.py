"""An interrupt reaches the attempt it was meant for, and no other in its thread."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from typing import cast

import pytest
from tests.support.bench import a_claim
from tests.support.waiting import until

from perdure import App
from perdure.domain.jobs.outcome import Done, Outcome
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.outcomes import AttemptInterrupted
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.execution.threads import ThreadCrew


@pytest.fixture
def app() -> App:
    return App("sqlite:///unused.db")


async def test_an_interrupt_that_comes_after_the_end_changes_neither_this_attempt_nor_the_next(app: App) -> None:
    @app.job
    def plain() -> None:
        return None

    ended: list[tuple[Running, Outcome | None]] = []
    late = LateInterrupt()
    crew = ThreadCrew(1, late.execute, lambda *what: ended.append(what), asyncio.get_running_loop())
    crew._lock = cast("threading.Lock", late)
    attempts = [Running(a_claim("plain"), app.kinds["plain"], StopFlag(), 0.0) for _ in range(3)]
    for running in attempts:
        running.stop = Stop.CANCELLED
        crew.submit(running)
    await until(lambda: len(ended) == 3)
    crew.close()
    assert ended == [(running, Done("42")) for running in attempts]


class LateInterrupt:
    """Executes attempts, and interrupts each when it has ended but its thread has not yet let go of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: int | None = None  # the thread

    def execute(self, _: Running) -> Outcome:
        self._ended = threading.get_ident()
        return Done("42")

    def __enter__(self) -> None:
        if self._ended == threading.get_ident():
            self._ended = None
            error = ctypes.py_object(AttemptInterrupted)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), error)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
