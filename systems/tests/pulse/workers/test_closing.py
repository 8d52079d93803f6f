"""Closing (C1) inside this process; test_processes does it with signals."""

from __future__ import annotations

import asyncio

import pytest
from systems.tests.pulse.support import SQLITE, put, view_of
from tests.support.waiting import PATIENCE, until

from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.model import model
from perdure_systems.pulse.settings import FOR_TESTS, worker_settings
from perdure_systems.pulse.standins import ModelStandin


@SQLITE
async def test_c1_a_stop_waits_for_the_current_task_and_keeps_the_checkpoint(
    box: Sandbox, standin: ModelStandin
) -> None:
    standin.delay = 0.01
    submitted = await put(100, handler="index")
    worker = await app.worker(worker_settings(FOR_TESTS))
    running = asyncio.create_task(worker.run())
    await until(lambda: standin.answered >= 3)
    worker.stop()
    await asyncio.wait_for(running, PATIENCE)
    view = await view_of(submitted.job_id)
    assert (view.state, view.failures, view.crashes, view.cursor) == ("ready", 0, 0, str(standin.answered))
    assert len(standin.asked) == standin.answered < 100
    del box


@SQLITE
async def test_c1_cancellation_reaches_a_handler_that_does_not_leave_by_itself(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the stop timeout it is cancelled; what it had reached is kept, and no attempt is lost."""
    reached, cancelled = asyncio.Event(), asyncio.Event()

    async def embed(text: str) -> None:
        if not text.startswith("Piece 001"):
            return
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    monkeypatch.setattr(model, "embed", embed)
    submitted = await put(2, handler="index")
    worker = await app.worker(worker_settings(FOR_TESTS | {"PULSE_STOP_TIMEOUT": "100ms"}))
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(reached.wait(), PATIENCE)
    worker.stop()
    await asyncio.wait_for(running, PATIENCE)
    view = await view_of(submitted.job_id)
    assert cancelled.is_set()
    assert (view.state, view.failures, view.crashes, view.cursor) == ("ready", 0, 0, "1")
    del box
