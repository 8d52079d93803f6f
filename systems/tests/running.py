"""A system that runs in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from perdure_systems.kit.service import System, run_system

PATIENCE = 60  # seconds, on a machine that does much else


@asynccontextmanager
async def running_system(system: System, *, run_jobs: bool = True) -> AsyncIterator[str]:
    """Run a system on a free port for the block; its address. A system that cannot start fails the test at once."""
    stop, opened = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(run_system(system, port=0, run_jobs=run_jobs, stop=stop, when_open=opened.set_result))
    await asyncio.wait({opened, running}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    assert opened.done(), f"{system.name} does not answer after {PATIENCE} s"
    try:
        yield opened.result()
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE)
