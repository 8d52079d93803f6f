"""Handlers with `isolate=True` get processes of their own in a sandbox that says so."""

from __future__ import annotations

import json
import os

import pytest
from tests.support.programs import isolated_jobs

from perdure import JobNotSuccessful
from perdure.testing import Sandbox


async def test_a_handler_runs_in_a_process_of_its_own_if_the_sandbox_says_so() -> None:
    async with Sandbox(isolated_jobs.app, isolate=True) as box:
        await isolated_jobs.tell.enqueue("hi")
        (job,) = (await box.drain()).jobs
    told = json.loads(job.result or "{}")
    assert (told["greeting"], told["parent"]) == ("hi", os.getpid())


async def test_the_death_of_a_process_is_raised_by_its_record() -> None:
    async with Sandbox(isolated_jobs.app, isolate=True, inline=True) as box:
        with pytest.raises(JobNotSuccessful, match=r"is retrying: .*ProcessDied.*exit"):
            await isolated_jobs.leave.enqueue(3)
        assert "so long" in (await box.attempts(box.enqueued()[0].id))[0].traceback  # type: ignore[operator]
