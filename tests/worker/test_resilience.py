"""A worker keeps listening, and gets its id back, whatever goes wrong around it; and it says what it leaves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.builders.jobs import enqueue, show
from tests.support.waiting import until

from perdure import App, JobState, WorkerSettings
from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.domain.worker import NewWorker
from perdure.events import Emitter, Event, RecordsLeft, StoreTrouble
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged
from perdure.worker.wiring.worker import build_worker
from perdure.worker.worker import Worker

QUICK = WorkerSettings(grace="10ms", poll="50ms", stop_timeout=0)


class Troubled:
    """A store that fails where the test wants it to, and else does its work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registered = 0
        self.listened = 0
        self.mute = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def register(self, worker: NewWorker) -> WorkerId:
        self.registered += 1
        if self.registered == 2:
            raise OSError("no file to spare")
        return await self._store.register(worker)

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        self.listened += 1
        if self.listened == 1:
            raise OSError("no file to spare")
        return self._store.wakeups()

    async def acknowledge(self, transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        if self.mute:
            await asyncio.Event().wait()
        return await self._store.acknowledge(transitions, audit)


@pytest.fixture
async def troubled(tmp_path: Path) -> AsyncIterator[Troubled]:
    store = store_for(f"sqlite:///{tmp_path / 'perdure.db'}")
    await store.open()
    await store.migrate()
    yield Troubled(store)
    await store.close()


@asynccontextmanager
async def at_work(app: App, store: Troubled, events: list[Event]) -> AsyncIterator[Worker]:
    emitter = Emitter()
    emitter.subscribe(events.append)
    worker = build_worker(
        store=cast("Store", store), kinds=app.kinds, settings=QUICK, emitter=emitter, clock=SystemClock()
    )
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(worker.opened.wait(), 30)
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)


def troubles(events: list[Event]) -> Counter[str]:
    return Counter(event.what for event in events if isinstance(event, StoreTrouble))


async def test_a_worker_that_lost_its_id_gets_a_new_one_after_any_error_of_the_first_try(troubled: Troubled) -> None:
    events: list[Event] = []
    async with at_work(App("sqlite:///unused.db"), troubled, events) as worker:
        assert worker._parts.membership.heartbeat is not None
        await worker._parts.membership.heartbeat.stop()
        worker._parts.membership.lost()
        await until(lambda: worker._parts.membership.worker_id)
    assert (troubled.registered, troubles(events)["register"]) == (3, 1)


async def test_a_worker_that_cannot_listen_tries_again(troubled: Troubled) -> None:
    events: list[Event] = []
    async with at_work(App("sqlite:///unused.db"), troubled, events):
        await until(lambda: troubled.listened == 2)
    assert troubles(events)["listen"] == 1


async def test_a_worker_that_closes_without_having_recorded_everything_says_so(troubled: Troubled) -> None:
    app = App("sqlite:///unused.db")
    ran = asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        ran.set()

    troubled.mute = True
    events: list[Event] = []
    async with at_work(app, troubled, events) as worker:
        job_id = await enqueue(cast("Store", troubled))
        await asyncio.wait_for(ran.wait(), 30)
    assert [event for event in events if isinstance(event, RecordsLeft)] == [RecordsLeft(worker.name, 1)]
    assert (await show(cast("Store", troubled), job_id)).state is JobState.RUNNING
