"""Ends a process that has nothing left to do, even if something in it does not end.

A task that ignores its cancellation, a blocking call in one of asyncio's threads, or a library's own thread would keep
the process of a closed worker for ever: `asyncio.run` and the interpreter wait for them. None of them holds a job any
more, so after a moment the process ends without them.

A handler that blocks the event loop keeps the worker from seeing the stop signal. Then nothing can close the worker,
and after the stop timeout its process ends as if killed: its jobs are rescued.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

from perdure.events import Emitter, ProcessLingered, StopUnheard

_Why = type[ProcessLingered | StopUnheard]


def end_within(limit: timedelta, code: int, emitter: Emitter, why: _Why = ProcessLingered) -> None:
    """Give the process this long to end; then log what keeps it, and end it with this code."""
    known = limit, code, emitter, why, asyncio.get_running_loop()
    threading.Thread(target=_end, args=known, name="perdure-last-moments", daemon=True).start()


def _end(limit: timedelta, code: int, emitter: Emitter, why: _Why, loop: asyncio.AbstractEventLoop) -> None:
    time.sleep(limit.total_seconds())
    try:
        emitter.emit(why(os.getpid(), _who_lingers(loop)))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


def _who_lingers(loop: asyncio.AbstractEventLoop) -> tuple[str, ...]:
    names = [thread.name for thread in threading.enumerate() if not thread.daemon and thread.name != "MainThread"]
    with suppress(RuntimeError):  # they come and go while this looks
        names += [str(getattr(task.get_coro(), "__qualname__", task)) for task in asyncio.all_tasks(loop)]
    return tuple(sorted(names))
