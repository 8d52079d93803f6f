"""The demo runs by itself, closes in good order when it is interrupted, and opens where it left off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from perdure_systems.kit.serving import LOOPBACK, bind

PATIENCE = 240.0


async def demo(folder: Path, *options: str) -> asyncio.subprocess.Process:
    """Start the demo as `make demo` does; without a terminal it goes on by itself."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure_systems.demo", "--folder", str(folder), "--pause", "0", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        stdin=asyncio.subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )


async def read_until(process: asyncio.subprocess.Process, text: str) -> str:
    """What it prints until a line with this text, or until its end."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            lines.append(line.decode())
            if text in lines[-1]:
                break
    return "".join(lines)


async def test_the_tour_keeps_its_promises_and_goes_on_after_an_interrupt(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with bind(LOOPBACK, 0) as taken:
        port = taken.getsockname()[1]
        first = await demo(folder, "--port", str(port))
        said = await read_until(first, "the parent holds no worker")
        assert f"port {port} is in use: the pages took free ports instead" in said
        assert "this step failed" not in said

        first.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = await read_until(first, "never printed")
        assert await first.wait() == 0, said
        assert "closed (all workers in good order)" in said
        assert time.monotonic() - began < 60  # the stop timeout of a worker is 20 s, on however busy a machine

    second = await demo(folder, "--port", str(port))
    said = await read_until(second, "never printed")
    assert await second.wait() == 0, said
    assert "opening where the last demo left off" in said
    assert "8 of 8 steps kept their promise" in said
    assert "this step failed" not in said
