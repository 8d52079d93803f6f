"""The processes of the demo: one for the pages, and workers that can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

_PROCESS_TIMEOUT_SECONDS: Final = 60.0  # for a process to start or stop


class ProcessFailed(Exception):  # noqa: N818 - says what happened
    """A process of the demo ended by itself; the message has the end of its log."""


class Part:
    """A process of the demo. What it prints to standard error goes to a log file."""

    def __init__(self, name: str, arguments: tuple[str, ...], environment: Mapping[str, str], logs: Path) -> None:
        self.name = name
        self.log = logs / f"{name}.log"
        self._arguments = arguments
        self._environment = {**os.environ, **environment}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._process.pid

    async def start(self) -> str:
        """Start it, and wait for its first line; the line."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *self._arguments,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                stdin=asyncio.subprocess.PIPE,  # its end tells the process that the tour is gone, however it went
                env=self._environment,
            )
        if self._process.stdout is None:
            raise RuntimeError(f"{self.name} has no output")
        async with asyncio.timeout(_PROCESS_TIMEOUT_SECONDS):
            line = await self._process.stdout.readline()
        if not line:
            raise ProcessFailed(f"{self.name} did not start:\n{self._end_of_log()}")
        return line.decode().strip()

    async def kill(self) -> None:
        """Kill it with SIGKILL: it has no time to clean up."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ask it to stop, and wait; its exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.returncode is None:
            process.send_signal(how)
        async with asyncio.timeout(_PROCESS_TIMEOUT_SECONDS):
            return await process.wait()

    def _end_of_log(self) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])


def stop_with_the_tour(stopping: asyncio.Event) -> None:
    """In a process of the demo: set the event when SIGTERM comes, or when the tour has died."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 1_000):
            loop.remove_reader(sys.stdin)
            stopping.set()

    loop.add_reader(sys.stdin, look)
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    # Ctrl-C is the tour's: it stops us in its own order. A handler of the loop would end with the loop, and a second
    # Ctrl-C at that moment would kill a process that has closed in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def pages_part(environment: Mapping[str, str], logs: Path, port: int) -> Part:
    """The process that serves all pages."""
    return Part("pages", ("perdure_systems.demo.pages", str(port)), environment, logs)


def worker_part(number: int, environment: Mapping[str, str], logs: Path) -> Part:
    """A process that runs the jobs of all systems."""
    return Part(f"worker-{number}", ("perdure_systems.demo.work",), environment, logs)


def read_addresses(line: str) -> dict[str, str]:
    """The addresses that the process of the pages prints."""
    return msgspec.json.decode(line, type=dict[str, str])
