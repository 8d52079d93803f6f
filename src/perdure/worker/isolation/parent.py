"""The worker's side of an isolated attempt: its process, and the socket to it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from typing import Any, Final

import msgspec

from perdure.worker.isolation.stderr_tail import StderrTail
from perdure.worker.isolation.wire import LINE_LIMIT_BYTES, Notice, Order, Place, Report, from_line, to_line

_MAIN: Final = "__main__"
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from perdure.worker.isolation.child import main; main()"
)
_HOW_TO_IMPORT_MAIN: Final = ("sys_argv", "orig_dir", "dir", "init_main_from_name", "init_main_from_path")
_LAST_OUTPUT_SECONDS: Final = 0.1


class IsolatedProcess:
    """A process in its own session that imports one module, waits for one order, and reports once."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stderr: StderrTail
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._stderr = stderr
        self._exit = asyncio.get_running_loop().create_task(process.wait())

    @classmethod
    async def start(cls, module: str) -> IsolatedProcess:
        """Start a process that imports this module and waits; raises OSError if the system refuses."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_LIMIT_BYTES)
        stderr = StderrTail()
        try:
            main = _main_again() if module == _MAIN else None
            place = Place(sys.path, module, main, theirs.fileno(), os.getpid())
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _BOOT,
                to_line(place).decode(),
                stdin=DEVNULL,
                stderr=stderr.writer,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            writer.close()
            stderr.close()
            raise
        finally:
            theirs.close()
            stderr.started()
        return cls(process, reader, writer, stderr)

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    @property
    def last_words(self) -> str | None:
        """The end of its standard error output."""
        return self._stderr.text

    async def report(self) -> Report | None:
        """Wait for its next message; None: it ended without a readable one."""
        line = asyncio.get_running_loop().create_task(self._reader.readline())
        try:
            await asyncio.wait({line, self._exit}, return_when=asyncio.FIRST_COMPLETED)
            # Messages sent before its end still arrive. The socket may stay open if a child of the process holds it.
            await asyncio.wait({line}, timeout=1)
            with suppress(OSError, ValueError, msgspec.DecodeError):
                return from_line(line.result(), Report) if line.done() else None
        finally:
            line.cancel()
        return None

    def order(self, order: Order) -> None:
        """Send the order."""
        self._writer.write(to_line(order))

    def send(self, notice: Notice) -> None:
        """Send a notice to the handler."""
        if not self._writer.is_closing():
            self._writer.write(to_line(notice))

    def kill(self) -> None:
        """Kill it, and every process that it started and that stayed in its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def kill_with_stacks(self) -> None:
        """Kill it after it has written the stacks of its threads."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGQUIT)
        await asyncio.wait({self._exit}, timeout=_LAST_OUTPUT_SECONDS)
        self.kill()
        await self.ended()

    async def ended(self, within: float | None = None) -> int:
        """Wait for its end, and kill it and its group when the time is up; returns its return code."""
        await asyncio.wait({self._exit}, timeout=within)
        self.kill()
        await asyncio.wait({self._exit})
        self._stderr.close()
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        return self._exit.result()


def _main_again() -> dict[str, Any]:
    from multiprocessing.spawn import get_preparation_data  # noqa: PLC0415 - rarely needed, and slow to load

    data = get_preparation_data("perdure")
    return {key: data[key] for key in _HOW_TO_IMPORT_MAIN if key in data}
