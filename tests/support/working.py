"""A worker on an open store, with what it tells, for as long as a test needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.support.builders.jobs import show
from tests.support.waiting import PATIENCE

from perdure import App, JobState, JobView, WorkerSettings
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL
from perdure.events import Emitter, Event
from perdure.storage.port import Store
from perdure.worker.wiring.worker import build_worker

Told = TypeVar("Told", bound=Event)
Found = TypeVar("Found")


class Shift:
    """A worker at work."""

    def __init__(self, store: Store, app: App, settings: WorkerSettings) -> None:
        self.events: list[Event] = []
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        self.worker = build_worker(
            store=store,
            kinds=app.kinds,
            settings=settings,
            emitter=emitter,
            clock=SystemClock(),
            schedules=tuple(app.schedules.values()),
            periodic=tuple(app.periodic.values()),
        )
        self._running = asyncio.create_task(self.worker.run())

    def told(self, kind: type[Told]) -> list[Told]:
        """The events of this kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def opened(self) -> None:
        """Wait until it works."""
        opened = asyncio.create_task(self.worker.opened.wait())
        await asyncio.wait({opened, self._running}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()
        assert opened.done()

    async def stopped(self) -> float:
        """Stop it, and wait until it has closed; how long that took."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self.worker.stop()
        await asyncio.wait_for(asyncio.shield(self._running), PATIENCE)
        return loop.time() - begun


@asynccontextmanager
async def at_work(store: Store, app: App, **settings: Any) -> AsyncIterator[Shift]:
    """A worker with these settings, open when the block begins and closed when it ends."""
    quick = {"poll": "50ms", "grace": "200ms", "stop_timeout": "0s"}
    shift = Shift(store, app, WorkerSettings(**(quick | settings)))
    try:
        await shift.opened()
        yield shift
    finally:
        await shift.stopped()


async def found(look: Callable[[], Awaitable[Found | None]]) -> Found:
    """What a look finds, as soon as it finds something."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await look()):
            await asyncio.sleep(0.01)
    return found


async def seen(store: Store, job_id: JobId, *states: JobState) -> JobView:
    """The job, once it is in one of these states; in any final one if none is given."""

    async def look() -> JobView | None:
        view = await show(store, job_id)
        return view if view.state in (states or FINAL) else None

    return await found(look)
