"""G5 when the process dies between a handler's write and its acknowledgement."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest
from tests.support.programs.doomed_worker import doomed
from tests.support.programs.effects import at_work, written

from perdure import App


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_a_crash_before_the_acknowledgement_leaves_nothing_and_the_next_attempt_writes_once(
    app: App, url: str, mode: str
) -> None:
    job = doomed(app, url, mode, dies=False)
    handle = await job.enqueue()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.programs.doomed_worker", url, mode
    )
    async with asyncio.timeout(60):
        assert await process.wait() == -signal.SIGKILL
    assert written(url) == []
    async with at_work(app):
        await handle.result(timeout="30s")
    assert written(url) == ["crashes before: 1"]
    assert (await handle.view()).crashes == 1
