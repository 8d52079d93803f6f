"""Pulse as a real process, as people start it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.waiting import PATIENCE, until

from perdure_systems.pulse.settings import FOR_TESTS


class Process:
    """One `python -m perdure_systems pulse`, with the settings for tests."""

    def __init__(self, url: str, folder: Path, number: int, **variables: str) -> None:
        self.out, self.err = folder / f"out{number}.txt", folder / f"err{number}.txt"
        command = [sys.executable, "-m", "perdure_systems", "pulse", "--url", url, "--port", "0"]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=os.environ | FOR_TESTS | variables)

    async def opened(self) -> None:
        """Wait until it answers requests."""
        await until(lambda: "✿ Pulse at" in self.log or self.process.poll() is not None)
        assert self.process.poll() is None, self.err.read_text()

    @property
    def log(self) -> str:
        """What it has written to its log."""
        return self.out.read_text()

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.log.partition("✿ Pulse at ")[2].splitlines()[0]

    async def end(self, number: signal.Signals) -> int:
        """Send a signal, and wait for the end; the exit code."""
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, PATIENCE)


@asynccontextmanager
async def pulse(url: str, folder: Path, number: int = 1, **variables: str) -> AsyncIterator[Process]:
    """A process for the block; it is killed at the end if it still runs."""
    one = Process(url, folder, number, **variables)
    try:
        await one.opened()
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(PATIENCE)
