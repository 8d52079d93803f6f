"""Several worker processes under one parent that runs no jobs itself.

The parent starts each with its own arguments, replaces one that dies, passes signals on, and on a stop waits for all of
them, killing the rest when the time is up. A worker that dies quickly again and again is restarted with backoff; one
that reports wrong arguments ends everything, because a restart would not help.

SIGTSTP makes all of them quiet, including those started later, and SIGCONT ends that; neither stops the parent.

No worker outlives its parent for long: when the parent is gone, each closes cleanly, and is killed if it does not close
within the stop time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from perdure.errors import SettingsError
from perdure.events import Emitter, WorkerProcessDied, WorkerProcessKilled, WorkerProcessStarted
from perdure.events.log import EventLog
from perdure.lifecycle.process.exits import EXIT_FAILED, EXIT_OK, EXIT_RECYCLED, EXIT_STACKS, EXIT_USAGE, how_it_ended
from perdure.lifecycle.process.parent_death import die_with_parent
from perdure.policy.outage_backoff import OutageBackoff

_VARIABLE: Final = "PERDURE_SUPERVISOR"  # pid of the supervisor, the seconds that a stop may take, and perhaps quiet
_PLACE: Final = "PERDURE_SUPERVISED_AS"  # which of the processes it is, from 1
_QUIET: Final = ":quiet"
_SETTLED_AFTER_SECONDS: Final = 10.0  # a worker that lived this long did not die quickly
_STOP_TIMEOUT: Final = timedelta(seconds=45)
_STACKS_TIMEOUT_SECONDS: Final = 5.0  # on SIGQUIT no worker closes: one that takes longer is stuck in C code
_BARE_STACKS_TIMEOUT_SECONDS: Final = 1.0
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_PASSED_ON: Final = (signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR1, signal.SIGUSR2)
_THIS_PROGRAM: Final = (sys.executable, "-m", "perdure")


def supervise(
    arguments: Sequence[str],
    processes: int,
    *,
    stop_within: timedelta = _STOP_TIMEOUT,
    command: Sequence[str] = _THIS_PROGRAM,
    emitter: Emitter | None = None,
) -> int:
    """Run this many processes of `command` with these arguments until told to stop; returns the parent's exit code.

    `stop_within` is the whole time that a worker may take to stop: its stop timeout, and a margin for the database. In
    the processes `is_supervised()` is true: they must not supervise again.
    """
    if processes < 1:
        raise SettingsError("processes", f"must be at least 1, got {processes}")
    if emitter is None:
        emitter = Emitter()
        emitter.subscribe(EventLog())
    return asyncio.run(Supervisor([*command, *arguments], processes, stop_within.total_seconds(), emitter).run())


def is_supervised() -> bool:
    """Whether this process was started by a supervisor."""
    return _orders(os.environ)[0] == os.getppid()


def begins_quiet() -> bool:
    """Whether the supervisor was told to be quiet before it started this process."""
    return is_supervised() and os.environ[_VARIABLE].endswith(_QUIET)


def own_place() -> int:
    """Which of the supervisor's processes this is, from 1; 1 without a supervisor."""
    place = os.environ.get(_PLACE, "")
    return int(place) if is_supervised() and place.isdecimal() else 1


def follow_supervisor() -> None:
    """Close when the supervisor is gone, and die if that takes too long; does nothing without a supervisor."""
    parent, stop_within = _orders(os.environ)
    if parent is None or parent != os.getppid():
        return
    die_with_parent(parent, signal.SIGTERM)
    watch = threading.Thread(target=_outlive_briefly, args=(parent, stop_within), name="perdure-parent", daemon=True)
    watch.start()


class Supervisor:
    """Keeps this many processes of one command alive until it is stopped."""

    def __init__(self, command: Sequence[str], processes: int, stop_within: float, emitter: Emitter) -> None:
        self._command = command
        self._stop_within = stop_within
        self._emitter = emitter
        self._places = range(1, processes + 1)
        self._alive: dict[int, Process] = {}
        self._stopping = asyncio.Event()
        self._is_quiet = False
        self._wants_stacks = False
        self._exit_code = EXIT_OK

    async def run(self) -> int:
        """Work until stopped; the exit code."""
        loop = asyncio.get_running_loop()
        for one in (*_STOPPING, *_PASSED_ON):
            if signal.getsignal(one) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
                loop.add_signal_handler(one, self._signalled, one)
        await asyncio.gather(*(self._keep_alive(place) for place in self._places))
        return self._exit_code

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Pass the signal on, and start no more processes."""
        self._stopping.set()
        self._pass_on(by)
        self._pass_on(signal.SIGCONT)  # a worker that SIGTSTP reached before it was ready is stopped

    def _signalled(self, by: signal.Signals) -> None:
        if by is signal.SIGQUIT:
            self._wants_stacks = True
            self._exit_code = EXIT_STACKS
            self._stop_within = min(self._stop_within, _STACKS_TIMEOUT_SECONDS)
        if by in _STOPPING:
            # A worker gets the same signal for every reason to stop; only SIGQUIT asks for more.
            self.stop(signal.SIGQUIT if by is signal.SIGQUIT else signal.SIGTERM)
        else:
            self._is_quiet = by is signal.SIGTSTP or (self._is_quiet and by is not signal.SIGCONT)
            self._pass_on(by)

    def _pass_on(self, by: signal.Signals) -> None:
        for process in self._alive.values():
            with suppress(ProcessLookupError):
                process.send_signal(by)

    async def _keep_alive(self, place: int) -> None:
        backoff = OutageBackoff()
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                process = await self._start(place)
            except OSError as error:  # no process or memory left: the other workers continue
                await self._rest(place, 0, f"could not be started: {error}", backoff)
                continue
            code = await self._until_ended(place, process)
            lived = time.monotonic() - started
            if self._stopping.is_set():
                self._note_last(code)
            elif code == EXIT_USAGE and lived < _SETTLED_AFTER_SECONDS:
                self._exit_code = code
                self.stop()
            elif code == EXIT_RECYCLED:
                backoff.succeeded()
            else:
                if lived >= _SETTLED_AFTER_SECONDS:
                    backoff.succeeded()
                await self._rest(place, process.pid, how_it_ended(code), backoff)

    async def _rest(self, place: int, pid: int, cause: str, backoff: OutageBackoff) -> None:
        wait = backoff.failed().total_seconds()
        self._emitter.emit(WorkerProcessDied(place, pid, cause, wait))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), wait)

    async def _start(self, place: int) -> Process:
        orders = {
            _VARIABLE: f"{os.getpid()}:{self._stop_within}{_QUIET if self._is_quiet else ''}",
            _PLACE: str(place),
        }
        # A group of its own: signals of a terminal go to the parent, which passes them on, so that they arrive once.
        process = await asyncio.create_subprocess_exec(*self._command, env=os.environ | orders, process_group=0)
        self._alive[place] = process
        self._emitter.emit(WorkerProcessStarted(place, process.pid))
        if self._stopping.is_set():  # told to stop while it was being started
            process.send_signal(signal.SIGTERM)
        return process

    async def _until_ended(self, place: int, process: Process) -> int:
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.wait({ended}, timeout=self._stop_within)
        if not ended.done() and self._wants_stacks:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGABRT)  # which faulthandler handles even there
            await asyncio.wait({ended}, timeout=_BARE_STACKS_TIMEOUT_SECONDS)
        if not ended.done():
            self._emitter.emit(WorkerProcessKilled(place, process.pid))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = await ended
        del self._alive[place]
        return code

    def _note_last(self, code: int) -> None:
        # A worker that the signal reached before it was ready holds no jobs yet.
        if code not in {EXIT_OK, EXIT_RECYCLED, -signal.SIGTERM} and self._exit_code == EXIT_OK:
            self._exit_code = code if code > 0 else EXIT_FAILED


def _orders(environment: Mapping[str, str]) -> tuple[int | None, float]:
    parent, _, within = environment.get(_VARIABLE, "").partition(":")
    try:
        return int(parent), float(within.removesuffix(_QUIET))
    except ValueError:
        return None, 0.0


def _outlive_briefly(parent: int, within: float) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    if sys.platform != "linux":  # where the kernel has already signalled
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(within)
    os.kill(os.getpid(), signal.SIGKILL)
