"""The live screen under test: as text, at rest, and on a database with a story."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import apply, claim_some, employ, enqueue
from textual.pilot import Pilot

from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import died
from perdure.storage.port import Store
from perdure.surfaces.top.dialogs import Question
from perdure.surfaces.top.screen import Top

NEVER = 3_600.0  # seconds: tests refresh by hand


def shown(app: Top) -> str:
    """The screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def settled(pilot: Pilot[Any]) -> None:
    """Let readings and commands of the screen come to rest."""
    await pilot.app.workers.wait_for_complete()
    await drawn(pilot)


async def drawn(pilot: Pilot[Any]) -> None:
    """Let the screen be drawn: a list takes another turn to measure its columns."""
    await pilot.pause()
    await pilot.pause()


async def asked(pilot: Pilot[Any]) -> None:
    """Wait until the screen asks: it looks at the database before."""
    for _ in range(1_000):
        if isinstance(pilot.app.screen, Question):
            break
        await pilot.pause(0.01)
    await drawn(pilot)


@pytest.fixture
async def busy(store: Store) -> Store:
    """A queue with a worker, one without, and two dead letters of one cause."""
    worker = await employ(store, name="pay-1", queues=("payments",), concurrency=4)
    for number in range(2):
        await enqueue(store, kind="charge_card", queue="payments", args=f'{{"order":{number}}}')
    for number, claim in enumerate(await claim_some(store, worker, 2, "payments")):
        await apply(store, died(claim, Reason.EXHAUSTED, Failure("TimeoutError", f"gateway {number} gave up\x1b[31m")))
    await enqueue(store, kind="report", queue="reports")
    return store
