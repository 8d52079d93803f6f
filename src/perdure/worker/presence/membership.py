"""The worker's registration: it registers, sends heartbeats, and registers again when its id is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.operate.audit import By
from perdure.domain.worker import NewWorker
from perdure.events import WorkerLost
from perdure.lifecycle.outage import ANY_ERROR, Outage
from perdure.worker.presence.heartbeat import BeatTimes, Heartbeat
from perdure.worker.surroundings import Surroundings

_LEASE_SHARE_PER_BEAT: Final = 1 / 6  # the longest that one try of a beat may take, so that others fit in
_SHORTEST_BEAT_SECONDS: Final = 1.0
_LEASE_SHARE_SURELY_ALIVE: Final = 0.8  # until then after a beat no other worker can declare this one dead


class MembershipOwner(Struct, frozen=True, kw_only=True, eq=False):
    """What a membership reports to the worker, and asks of it."""

    on_id: Callable[[WorkerId | None, Heartbeat | None], None]  # the worker has this id from now on, or none
    on_lost: Callable[[], None]  # everything that was held under the old id is lost
    on_back: Callable[[], None]  # the worker has an id again
    running: Callable[[], int]  # attempts under way
    is_quieted: Callable[[], bool]  # by an operator
    is_stopping: Callable[[], bool]


class Membership:
    """The id of one worker, and its heartbeat."""

    def __init__(self, around: Surroundings, me: NewWorker, owner: MembershipOwner) -> None:
        self._store = around.store
        self._settings = around.settings
        self._emitter = around.emitter
        self._clock = around.clock
        self._me = me
        self._owner = owner
        self._entering: asyncio.Task[None] | None = None
        self.worker_id: WorkerId | None = None
        self.heartbeat: Heartbeat | None = None

    def is_surely_alive(self) -> bool:
        """Whether the last heartbeat is so recent that no other worker can have declared this one dead."""
        if self.heartbeat is None:
            return False
        sure = _LEASE_SHARE_SURELY_ALIVE * self._settings.lease.total_seconds()
        return self._clock.monotonic() - self.heartbeat.heard_at < sure

    async def enter(self) -> None:
        """Register under a new id, and start its heartbeat."""
        heard_at = self._clock.monotonic()
        worker_id = await self._store.register(self._me)
        if self._owner.is_quieted():
            by = By(self._me.name, "the quiet request carries over to the new worker id", "worker")
            await self._store.quiet([worker_id], by, quiet=True)
        heartbeat = Heartbeat(
            self._store.sibling(),
            worker_id,
            BeatTimes(
                interval_seconds=self._settings.heartbeat.total_seconds(),
                limit_seconds=max(self._settings.lease.total_seconds() * _LEASE_SHARE_PER_BEAT, _SHORTEST_BEAT_SECONDS),
                registered_at=heard_at,
            ),
            emitter=self._emitter,
            clock=self._clock,
            on_lost=self.lost,
        )
        heartbeat.start()
        self.heartbeat = heartbeat
        self.worker_id = worker_id
        self._owner.on_id(worker_id, heartbeat)

    def lost(self) -> None:
        """The id is lost: stop everything that runs under it, and register under a new one."""
        self._emitter.emit(WorkerLost(self._me.name, self.worker_id or 0, self._owner.running()))
        self.worker_id = None
        self._owner.on_id(None, None)
        self._owner.on_lost()
        self._entering = asyncio.get_running_loop().create_task(self._enter_again())

    async def stop_entering(self) -> None:
        """Stop trying to register."""
        if self._entering is not None:
            self._entering.cancel()
            await asyncio.gather(self._entering, return_exceptions=True)

    async def stop_beating(self) -> None:
        """Stop the heartbeat; the worker keeps its id until it is retired."""
        if self.heartbeat is not None:
            await self.heartbeat.stop()

    async def _enter_again(self) -> None:
        if self._owner.is_stopping():
            return
        outage = Outage("register", self._emitter, self._settings.outage)
        try:
            await outage.outlast(self.enter, ANY_ERROR, stop=self._owner.is_stopping)  # without an id it could not work
        except Exception:  # noqa: BLE001 - the worker is stopping, and the outage has reported the error
            return
        self._owner.on_back()
