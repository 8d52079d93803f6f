"""A worker, from opening to closing: it joins the actors of this folder and owns none of their work.

Opening: register, beat, start the upkeep, listen for wake-ups, claim. Closing is the reverse: claim nothing more, let
handlers finish, ask the rest to stop and put their jobs back at no cost, record everything, retire.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from perdure.clock import Clock
from perdure.domain.ids import WorkerId
from perdure.domain.job import Claim
from perdure.domain.transition import released
from perdure.domain.worker import NewWorker
from perdure.errors import StoreError
from perdure.events import (
    Emitter,
    RecordsLeft,
    StoreRecovered,
    StoreTrouble,
    WorkerClosed,
    WorkerLost,
    WorkerOpened,
    WorkerRecycled,
)
from perdure.kinds.kind import Registry
from perdure.lifecycle.identity import this_process
from perdure.lifecycle.loop import Loop
from perdure.policy.patience import Patience
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest
from perdure.upkeep.promoter import Promoter
from perdure.upkeep.pruner import Pruner
from perdure.upkeep.rescuer import Rescuer
from perdure.version import __version__
from perdure.worker.acknowledger import Acknowledger
from perdure.worker.canceller import Canceller
from perdure.worker.executor import Executor
from perdure.worker.fetcher import Fetcher
from perdure.worker.heartbeat import Heartbeat
from perdure.worker.quarantine import Quarantine
from perdure.worker.recycler import Recycler
from perdure.worker.running import Stop
from perdure.worker.settings import WorkerSettings
from perdure.worker.slots import Slots

_SHORTEST_LIMIT: Final = 1.0
_RETRY: Final = 1.0


class Worker:
    """Runs jobs of an open store until it is stopped."""

    def __init__(self, store: Store, kinds: Registry, settings: WorkerSettings, emitter: Emitter, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._emitter = emitter
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        process = this_process()
        self.name = settings.name or f"{socket.gethostname()}:{process.pid}"
        self._self = NewWorker(
            name=self.name,
            process=process,
            queues=tuple(queue.name for queue in settings.queues),
            concurrency=settings.concurrency,
            version=__version__,
        )
        self._slots = Slots(settings.queues, settings.concurrency, settings.claim_batch)
        self._acknowledger = Acknowledger(store, emitter, settings.ack_batch, self._freed)
        self._executor = Executor(kinds, self._slots, settings, clock, emitter, store, self._acknowledger, self._freed)
        poll = settings.poll.total_seconds()
        self._fetcher = Fetcher(store, self._slots, emitter, poll, self._start, self._give_back, self._has_room)
        self._canceller = Canceller(store, emitter, self._cancel)
        promoter = Promoter(store, emitter, self._fetcher.wake)
        self._quarantine = Quarantine(store, emitter, self._start_now, self._is_running, promoter.wake)
        self._loops: list[Loop[Any]] = [
            promoter,
            Rescuer(store, emitter, clock, settings.lease, settings.sweep, self._fetcher.wake),
            Pruner(store, emitter, settings.keep),
            self._canceller,
        ]
        if settings.recycles:
            self._loops.append(Recycler(emitter, settings, lambda: self.finished, self._recycle))
        self._tasks: list[asyncio.Task[None]] = []
        self._heartbeat: Heartbeat | None = None
        self._worker_id: WorkerId | None = None
        self.opened = asyncio.Event()
        self.recycled = False
        self._hurried = False
        self._closing = False

    @property
    def running(self) -> int:
        """How many attempts are under way."""
        return len(self._executor.running)

    @property
    def finished(self) -> int:
        """How many attempts have ended here."""
        return self._executor.finished

    @property
    def acknowledged(self) -> int:
        """How many attempts are recorded in the store."""
        return self._acknowledger.applied

    @property
    def stale_writes(self) -> int:
        """How many acknowledgements came too late and changed nothing."""
        return self._acknowledger.stale

    def stop(self) -> None:
        """Begin to close; `run` returns when that is done."""
        self._stop.set()

    def hurry(self) -> None:
        """Close without waiting for handlers to finish: they are asked to stop, and their jobs go back at no cost."""
        self._hurried = True
        self._stop.set()

    def wake(self) -> None:
        """Look for work now."""
        self._fetcher.wake()

    async def run(self) -> None:
        """Work until stopped."""
        await self._enter()
        for loop in self._loops:
            self._background(loop.run())
        self._background(self._listen())
        fetching = self._background(self._fetcher.run())
        queues = tuple(queue.name for queue in self._settings.queues)
        self._emitter.emit(WorkerOpened(self.name, self._worker_id or 0, queues, self._settings.concurrency))
        self.opened.set()
        stopping = self._loop.create_task(self._stop.wait())
        try:
            await asyncio.wait([stopping, fetching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._close()
        if fetching.done() and not fetching.cancelled() and (error := fetching.exception()):
            raise error

    async def _enter(self) -> None:
        """Register under a new id, and beat for it."""
        worker_id = await self._store.register(self._self)
        beat = self._settings.heartbeat.total_seconds()
        limit = max(self._settings.lease.total_seconds() / 6, _SHORTEST_LIMIT)  # so that there is time for another try
        heartbeat = Heartbeat(self._store.sibling(), worker_id, beat, limit, self._emitter, self._lost)
        heartbeat.start()
        self._heartbeat = heartbeat
        self._worker_id = self._fetcher.worker_id = self._canceller.worker_id = worker_id

    async def _listen(self) -> None:
        patience = Patience()
        while not self._closing:
            try:
                async with self._store.wakeups() as wakeups:
                    if failures := patience.succeeded():
                        self._emitter.emit(StoreRecovered("listen", failures))
                    self._fetcher.wake()  # for what came between the last look and now
                    async for _ in wakeups:
                        self._fetcher.wake()
            except Exception as error:  # noqa: BLE001 - without ears the worker is slow, and must not stay so
                wait = patience.failed().total_seconds()
                self._emitter.emit(StoreTrouble("listen", f"{type(error).__name__}: {error}", wait))
                await asyncio.sleep(wait)
            else:
                return

    def _start(self, claims: list[Claim]) -> None:
        if self._closing:  # they were on their way when the worker began to close
            self._give_back(claims)
        else:
            self._quarantine.start(claims)

    def _start_now(self, claims: Sequence[Claim]) -> None:
        if self._closing:  # they were in quarantine when the worker began to close
            self._give_back(claims)
        else:
            self._executor.start(claims)

    def _give_back(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._acknowledger.add(released(claim))

    def _is_running(self, claim: Claim) -> bool:
        return self._executor.find(claim.job_id, claim.token) is not None

    def _has_room(self) -> bool:
        return (
            self._acknowledger.backlog < self._settings.unacknowledged
            and self._executor.thread_backlog < self._settings.threads
            and self._executor.process_backlog < self._settings.isolated
        )

    def _freed(self) -> None:
        self._fetcher.freed()

    def _cancel(self, request: CancelRequest) -> None:
        running = self._executor.find(request.job_id, request.token)
        if running is not None:
            self._executor.stop(running, Stop.CANCELLED, request.why)

    def _recycle(self, why: str) -> None:
        if not self._stop.is_set():
            self.recycled = True
            self._emitter.emit(WorkerRecycled(self.name, why))
            self.stop()

    def _lost(self) -> None:
        """Everything held under the old id is lost: stop it, and begin again under a new one."""
        self._emitter.emit(WorkerLost(self.name, self._worker_id or 0, self.running))
        self._worker_id = self._fetcher.worker_id = self._canceller.worker_id = None
        for running in list(self._executor.running):
            self._executor.stop(running, Stop.LOST)
        self._background(self._enter_again())

    async def _enter_again(self) -> None:
        while not self._stop.is_set():
            try:
                await self._enter()
            except Exception as error:  # noqa: BLE001 - without an id the worker would idle for ever
                self._emitter.emit(StoreTrouble("register", f"{type(error).__name__}: {error}", _RETRY))
                await asyncio.sleep(_RETRY)
            else:
                self._fetcher.wake()
                return

    async def _close(self) -> None:
        self._closing = True
        self._fetcher.stop()
        self._executor.announce_closing()
        await self._wait_until(
            lambda: self._hurried or not self._executor.running, self._settings.stop_timeout.total_seconds()
        )
        left = list(self._executor.running)
        for running in left:
            self._executor.stop(running, Stop.CLOSING)
        still = self._settings.grace.total_seconds() + 1
        await self._wait_until(lambda: not any(not running.given_up for running in self._executor.running), still)
        with suppress(TimeoutError):  # to cut a claim off would leave jobs that nobody knows to hold
            await asyncio.wait_for(self._fetcher.settle(), still)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._quarantine.settle(), still)
        await self._quarantine.close()
        try:
            await asyncio.wait_for(self._acknowledger.drain(), max(self._settings.stop_timeout.total_seconds(), still))
        except TimeoutError:
            self._emitter.emit(RecordsLeft(self.name, self._acknowledger.backlog))
        for loop in self._loops:
            loop.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._executor.close()
        if self._heartbeat is not None:
            await self._heartbeat.stop()
        if self._worker_id is not None:
            with suppress(StoreError):
                await self._store.retire(self._worker_id)
        self._emitter.emit(WorkerClosed(self.name, self._executor.finished, len(left)))

    @staticmethod
    async def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while not condition() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - closing is rare
            await asyncio.sleep(0.01)

    def _background(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.append(task)
        return task
