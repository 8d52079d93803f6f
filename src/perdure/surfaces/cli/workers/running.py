"""One worker process: it runs until told to stop, and closes cleanly."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final

from perdure.app.app import App
from perdure.clock import Clock, SystemClock
from perdure.events import Emitter, StopUnheard
from perdure.events.log import AttemptLog
from perdure.lifecycle.process.exits import EXIT_FAILED, EXIT_OK, EXIT_RECYCLED
from perdure.lifecycle.process.forced_exit import end_within
from perdure.lifecycle.process.stack_signals import StackSignals
from perdure.lifecycle.process.stacks import describe, text
from perdure.lifecycle.process.supervisor import begins_quiet
from perdure.signals.alerts.delivery import serve as serve_alerts
from perdure.worker.interpreter import set_up_for_work
from perdure.worker.presence.phase import BY_SIGNAL
from perdure.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from perdure.worker.worker import Worker

Beside = Callable[["Worker"], AbstractAsyncContextManager[None]]
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_QUIETING: Final = (signal.SIGTSTP, signal.SIGCONT)
_SAME_SIGNAL_SECONDS: Final = 1.0
_EXIT_TIMEOUT: Final = timedelta(seconds=3)  # once the worker has closed


async def run_worker(
    app: App, settings: WorkerSettings, attempts: AttemptLog | None = None, beside: Beside | None = None
) -> int:
    """Work until SIGTERM or SIGINT, then let running jobs finish within the stop timeout; returns the exit code.

    `attempts` logs each attempt. A second signal, a second or more after the first, hurries: running jobs are told to
    stop, and go back to the queue without using an attempt. SIGTSTP makes the worker quiet: it stops claiming, and its
    running jobs continue, until SIGCONT. SIGUSR1 prints what the process does; SIGQUIT prints it and ends the process
    with 2, without closing. `beside` runs in the same process: it is entered first and left last.
    """
    app.log_events(attempts)
    serve_alerts(app)
    stacks = Stacks(asyncio.get_running_loop())
    with StackSignals(stacks.report):
        async with app:
            stacks.worker = worker = await app.worker(settings)
            set_up_for_work(app.kinds)
            code = EXIT_FAILED
            try:
                async with nullcontext() if beside is None else beside(worker):
                    await _until_stopped(worker, Backstop(settings.stop_timeout + 2 * _EXIT_TIMEOUT, app.events))
                code = EXIT_RECYCLED if worker.recycled else EXIT_OK
            finally:
                end_within(_EXIT_TIMEOUT, code, app.events)
            return code


async def _until_stopped(worker: Worker, backstop: Backstop) -> None:
    signals = StopSignals(worker.stop, worker.hurry, SystemClock(), partial(_hint, worker))
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        loop.add_signal_handler(number, signals.arrived)
        signal.signal(number, backstop.arrived)  # in addition to the event loop, which has its own notification socket
        signal.siginterrupt(number, False)
    loop.add_signal_handler(signal.SIGTSTP, worker.quiet, BY_SIGNAL)
    loop.add_signal_handler(signal.SIGCONT, worker.loud, BY_SIGNAL)
    if begins_quiet():
        worker.quiet(BY_SIGNAL)
    try:
        await worker.run()
    finally:
        for number in (*_STOPPING, *_QUIETING):
            loop.remove_signal_handler(number)


def _hint(worker: Worker) -> None:
    """Print on a terminal what the next Ctrl-C does, if jobs are still running."""
    if worker.running and sys.stderr.isatty():
        jobs = "1 job" if worker.running == 1 else f"{worker.running} jobs"
        sys.stderr.write(f"\nWaiting for {jobs} to finish. Ctrl-C again gives them back to the queue at once.\n")


class Backstop:
    """Ends a process whose event loop does not handle stop signals: the signal handler interrupts blocking code."""

    def __init__(self, limit: timedelta, emitter: Emitter) -> None:
        self._limit = limit
        self._emitter = emitter
        self._is_set = False

    def arrived(self, number: int, frame: FrameType | None) -> None:
        """Set a limit after the first signal; a worker that handles it has closed by then."""
        del number, frame
        if not self._is_set:
            self._is_set = True
            end_within(self._limit, EXIT_FAILED, self._emitter, StopUnheard)


class Stacks:
    """The report of SIGQUIT and SIGUSR1: on the process, and on the worker once there is one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.worker: Worker | None = None

    def report(self, frame: FrameType | None) -> str:
        """The report, with the calling thread shown from this frame outwards."""
        worker = self.worker
        return text(describe(self._loop, innermost=frame) if worker is None else worker.describe(frame))


class StopSignals:
    """Interprets stop signals: the first one stops, a later one hurries.

    One request may arrive twice: systemd signals every process of a service, and the supervisor passes the same signal
    on. So a signal within a second of the first is ignored.
    """

    def __init__(
        self, stop: Callable[[], None], hurry: Callable[[], None], clock: Clock, hint: Callable[[], None] = lambda: None
    ) -> None:
        self._hint = hint
        self._stop = stop
        self._hurry = hurry
        self._clock = clock
        self._first: float | None = None

    def arrived(self) -> None:
        """Act on one signal."""
        if self._first is None:
            self._first = self._clock.monotonic()
            self._hint()
            self._stop()
        elif self._clock.monotonic() - self._first >= _SAME_SIGNAL_SECONDS:
            self._hurry()
