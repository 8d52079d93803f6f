"""Documents, workers and looks that the tests of pulse share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from tests.support.waiting import PATIENCE

from perdure import Event, JobState, JobView, Worker
from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.events import FamilySpawned
from perdure.testing import Sandbox
from perdure.worker.wiring.worker import build_worker
from perdure_systems.pulse.documents import read
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.model import model
from perdure_systems.pulse.settings import FOR_TESTS, worker_settings
from perdure_systems.pulse.submitting import Submitted, submit

SQLITE = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
"""For what is the same on every engine: a policy, a setting, a word."""
Found = TypeVar("Found")
PRICE_OF_A_PIECE = 0.0009
FINAL = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED})


def text_of(pieces: int) -> str:
    """A text that is split into so many pieces of 90 characters each."""
    return "\n\n".join(f"Piece {number:03} speaks of engines. ".ljust(89, "x") + "." for number in range(pieces))


async def put(pieces: int = 3, source: str = "engines.txt", handler: str = "summary") -> Submitted:
    """Submit a document of so many pieces."""
    return await submit(source, handler, read(source, text_of(pieces)))


@asynccontextmanager
async def at_work(**changes: str) -> AsyncIterator[Worker]:
    """A real worker of pulse with the settings for tests, and other ones as given."""
    worker = await app.worker(worker_settings(FOR_TESTS | changes))
    running = asyncio.create_task(worker.run())
    await worker.started()
    try:
        yield worker
    finally:
        worker.hurry()
        await asyncio.wait_for(running, PATIENCE)


@asynccontextmanager
async def at_work_in_real_time(url: str, **changes: str) -> AsyncIterator[Worker]:
    """A worker on the same database with a clock of its own, that of the machine, where the sandbox's stands still."""
    store = store_for(url)
    await store.open()
    worker = build_worker(
        store=store,
        kinds=app.kinds,
        settings=worker_settings(FOR_TESTS | changes),
        emitter=app.events,
        clock=SystemClock(),
    )
    async with model.opened():
        running = asyncio.create_task(worker.run())
        await worker.started()
        try:
            yield worker
        finally:
            worker.hurry()
            await asyncio.wait_for(running, PATIENCE)
            await store.close()


async def found(look: Callable[[], Awaitable[Found | None]]) -> Found:
    """What a look finds, as soon as it finds something."""
    async with asyncio.timeout(PATIENCE):
        while not (it := await look()):
            await asyncio.sleep(0.01)
    return it


async def seen(job_id: str, *states: str) -> JobView:
    """The job, once it is in one of these states; in any final one if none is given."""

    async def look() -> JobView | None:
        view = await view_of(job_id)
        return view if view.state in (states or FINAL) else None

    return await found(look)


async def view_of(job_id: str) -> JobView:
    """The job as it stands."""
    return (await (await app.desk("test")).job(job_id, lines=0)).job


async def children_of(job_id: str) -> list[JobView]:
    """Its children, in their order."""
    desk = await app.desk("test")
    return [(await desk.job(child, lines=0)).job for child in await desk.children(job_id)]


async def ingest_only(box: Sandbox) -> None:
    """Run what is due until children were created; they are left for later."""
    created: list[Event] = []
    forget = app.subscribe(created.append, FamilySpawned)
    try:
        await box.drain(until=lambda: bool(created))
    finally:
        forget()
