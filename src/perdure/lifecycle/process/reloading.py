"""For development: one worker process that restarts whenever a Python file changes.

The parent imports nothing of the app, so that each process sees the current files. A worker is stopped as by SIGTERM:
its running jobs may finish. One that ends by itself, as on a syntax error, restarts after the next change.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from perdure.lifecycle.process.exits import EXIT_FAILED, EXIT_OK, how_it_ended
from perdure.lifecycle.process.parent_death import die_with_parent

_VARIABLE: Final = "PERDURE_RELOADER"  # pid of the parent
_POLL_INTERVAL_SECONDS: Final = 0.5
_STOP_TIMEOUT_SECONDS: Final = 45.0
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})
_THIS_PROGRAM: Final = (sys.executable, "-m", "perdure")

Snapshot = dict[str, tuple[int, int]]


def run_reloading(arguments: Sequence[str], folder: Path, *, command: Sequence[str] = _THIS_PROGRAM) -> int:
    """Run `command` with these arguments until told to stop; restart it after each change below `folder`."""
    return asyncio.run(_Reloader([*command, *arguments], folder).run())


def is_reloaded() -> bool:
    """Whether this process was started by `run_reloading`."""
    return os.environ.get(_VARIABLE) == str(os.getppid())


def follow_reloader() -> None:
    """Close when the parent is gone."""
    die_with_parent(os.getppid(), signal.SIGTERM)


def snapshot(folder: Path) -> Snapshot:
    """The Python files below a folder with time and size; hidden folders and virtual environments are left out."""
    found: Snapshot = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))  # noqa: PTH110, PTH118 - twice a second
        ]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(place, name)  # noqa: PTH118
                with suppress(OSError):  # deleted since it was listed
                    known = os.stat(path)  # noqa: PTH116
                    found[path] = (known.st_mtime_ns, known.st_size)
    return found


class _Reloader:
    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._process: Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._stop)
        code = EXIT_OK
        while not self._stopping.is_set():
            before = await asyncio.to_thread(snapshot, self._folder)  # a change while it starts counts too
            process = await self._start()
            ended = asyncio.create_task(process.wait())
            changed = await self._until_changed(before, ended)
            if changed is not None and not ended.done():
                _print(f"{changed} changed: the worker is started again")
                _send(process, signal.SIGTERM)
            if changed is not None or self._stopping.is_set():
                code = await _end_of(process, ended)
                continue
            code = await ended
            _print(f"the worker {how_it_ended(code)}: it is started again when a file changes")
            if (changed := await self._until_changed(before, None)) is not None:
                _print(f"{changed} changed: the worker is started")
        return code if code > 0 else EXIT_OK if code in {EXIT_OK, -signal.SIGTERM} else EXIT_FAILED

    def _stop(self) -> None:
        """Pass each signal to the worker: the second one hurries."""
        self._stopping.set()
        if self._process is not None:
            _send(self._process, signal.SIGTERM)

    async def _start(self) -> Process:
        # A group of its own: Ctrl-C goes to this process, which passes it on, so that it arrives once.
        environment = os.environ | {_VARIABLE: str(os.getpid())}
        process = await asyncio.create_subprocess_exec(*self._command, env=environment, process_group=0)
        self._process = process
        if self._stopping.is_set():  # told to stop while it was being started
            _send(process, signal.SIGTERM)
        return process

    async def _until_changed(self, before: Snapshot, ended: asyncio.Task[int] | None) -> str | None:
        """The file that has changed; None: the worker has ended, or everything stops."""
        while not self._stopping.is_set() and not (ended is not None and ended.done()):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _POLL_INTERVAL_SECONDS)
            now = await asyncio.to_thread(snapshot, self._folder)
            if now != before:
                return self._changed(before, now)
        return None

    def _changed(self, before: Snapshot, now: Snapshot) -> str:
        path = min(path for path in now.keys() | before.keys() if now.get(path) != before.get(path))
        return os.path.relpath(path, self._folder)


async def _end_of(process: Process, ended: asyncio.Task[int]) -> int:
    await asyncio.wait({ended}, timeout=_STOP_TIMEOUT_SECONDS)
    if not ended.done():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return await ended


def _send(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _print(text: str) -> None:
    sys.stderr.write(f"perdure: {text}\n")
    sys.stderr.flush()
