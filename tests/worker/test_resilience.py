"""A worker keeps beating, listening and claiming, whatever goes wrong around it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bench import Ledger, a_claim
from tests.support.builders.jobs import enqueue, show
from tests.support.waiting import until

from perdure import App, JobState, WorkerSettings
from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.domain.worker import NewWorker
from perdure.events import Emitter, Event, RecordsLeft, StoreTrouble
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, Wanted
from perdure.worker.claiming.fetcher import Fetcher
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.claiming.slots import Slots
from perdure.worker.presence import heartbeat as heartbeat_module
from perdure.worker.presence.heartbeat import Heartbeat
from perdure.worker.settings import Queue
from perdure.worker.worker import Worker

QUICK = WorkerSettings(grace="10ms", poll="50ms", stop_timeout=0)


class Pulse:
    """A store that can only beat; each answer may be an error, a silence, or a word."""

    def __init__(self, *answers: BaseException | bool | None) -> None:
        self._answers = list(answers)
        self.beats = 0

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def fail(self) -> None:
        raise OSError("no file to spare")

    async def beat(self, _: WorkerId) -> bool:
        self.beats += 1
        answer = self._answers.pop(0) if self._answers else True
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, BaseException):
            raise answer
        return bool(answer)


def beating(pulse: Pulse, lost: Callable[[], None], events: list[Event] | None = None) -> Heartbeat:
    emitter = Emitter()
    emitter.subscribe((events if events is not None else []).append)
    heartbeat = Heartbeat(cast("Store", pulse), WorkerId(1), 0.01, 0.05, emitter, lost, SystemClock(), 0.0)
    heartbeat.start()
    return heartbeat


@pytest.mark.parametrize("trouble", [RuntimeError("odd"), OSError("no file to spare"), None], ids=str)
async def test_a_beat_that_fails_or_gets_no_answer_is_tried_again(trouble: Exception | None) -> None:
    lost: list[bool] = []
    events: list[Event] = []
    pulse = Pulse(True, trouble, True)
    heartbeat = beating(pulse, lambda: lost.append(True), events)
    await until(lambda: pulse.beats > 3)
    await heartbeat.stop()
    assert lost == []
    assert [type(event) for event in events] == [StoreTrouble]


@pytest.mark.parametrize("end", ["declared dead", "thread ended"])
async def test_a_worker_without_a_beat_is_told(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if end == "thread ended":
        monkeypatch.setattr(heartbeat_module, "_RETRY", 0.01)
        monkeypatch.setattr(Heartbeat, "_beat_until_stopped", Pulse.fail)
    lost = asyncio.Event()
    heartbeat = beating(Pulse(True, False), lost.set)
    await asyncio.wait_for(lost.wait(), 10)
    await heartbeat.stop()


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
    worker = Worker(cast("Store", store), app.kinds, QUICK, emitter, SystemClock())
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(worker.opened.wait(), 30)
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)


def troubles(events: list[Event]) -> Counter[str]:
    return Counter(event.what for event in events if isinstance(event, StoreTrouble))


async def test_a_worker_that_lost_its_id_gets_a_new_one_whatever_the_first_try_says(troubled: Troubled) -> None:
    events: list[Event] = []
    async with at_work(App("sqlite:///unused.db"), troubled, events) as worker:
        assert worker._heartbeat is not None
        await worker._heartbeat.stop()
        worker._lost()
        await until(lambda: worker._worker_id)
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


async def test_g9_a_job_in_quarantine_is_not_started_by_a_closing_worker() -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def plain() -> None:
        return None

    ledger = Ledger()
    worker = Worker(ledger.store, app.kinds, QUICK, Emitter(), SystemClock())
    suspect = a_claim("plain", crashes=2)
    worker._quarantine.start([suspect])
    worker._stages.is_closing = True
    await asyncio.wait_for(worker._quarantine.settle(), 10)
    await asyncio.wait_for(worker._acknowledger.drain(), 10)
    assert [(move.to, move.reason) for move in ledger.written.values()] == [(JobState.READY, Reason.RELEASED)]
    assert worker.running == 0


async def test_quarantine_gives_back_whatever_the_database_says_first() -> None:
    errors: list[Exception] = [RuntimeError("odd")]

    def refuse(_: Sequence[Transition]) -> None:
        if errors:
            raise errors.pop()

    ledger, started = Ledger(refuse), list[Claim]()
    quarantine = Quarantine(ledger.store, Emitter(), started.extend, lambda _: True, lambda: None)
    suspects = [a_claim("plain", crashes=2) for _ in range(2)]
    quarantine.start(suspects)
    await asyncio.wait_for(quarantine.settle(), 10)
    assert (started, list(ledger.written)) == (suspects[:1], [suspects[1].job_id])


async def test_what_was_claimed_under_an_id_that_is_lost_is_given_back_and_not_started() -> None:
    started, back, claim = list[Claim](), list[Claim](), a_claim("plain")

    class Losing:
        async def claim(self, _: WorkerId, __: Sequence[Wanted]) -> list[Claim]:
            fetcher.worker_id = None
            return [claim]

    slots = Slots((Queue("default"),), 10, 10)
    fetcher = Fetcher(cast("Store", Losing()), slots, Emitter(), 1.0, started.extend, back.extend, lambda: True)
    fetcher.worker_id = WorkerId(1)
    await fetcher._fill()
    assert (started, back) == ([], [claim])
