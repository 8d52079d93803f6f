"""Sends the worker's heartbeats, from a separate thread.

The thread has its own event loop and its own connection, so that a handler that blocks the worker's loop does not cost
the worker its lease. When the store says that the worker was declared dead, the thread reports it at once; while the
store cannot be reached, for any reason, the thread keeps trying every second. A beat without an answer within `limit`
is retried on a fresh connection, while the lease lasts.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct

from perdure.clock import Clock
from perdure.domain.jobs.ids import WorkerId
from perdure.events import Emitter, StoreTrouble
from perdure.lifecycle.process.watchdog import StoreCall
from perdure.storage.port import Store

_RETRY_SECONDS: Final = 1.0
_CLOSE_TIMEOUT_SECONDS: Final = 5.0  # seconds to close the connection


class BeatTimes(Struct, frozen=True, kw_only=True):
    """How often to beat, how long to wait for an answer, and when the worker registered by the monotonic clock."""

    interval_seconds: float
    limit_seconds: float
    registered_at: float


class Heartbeat:
    """Beats for one worker id until stopped, or until that id is lost."""

    def __init__(
        self,
        store: Store,
        worker_id: WorkerId,
        times: BeatTimes,
        *,
        emitter: Emitter,
        clock: Clock,
        on_lost: Callable[[], None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._interval = times.interval_seconds
        self._limit = times.limit_seconds
        self._emitter = emitter
        self._on_lost = on_lost
        self._owner = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="perdure-heartbeat", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self.call = StoreCall("heartbeat")
        self._clock = clock
        self.beats = 0  # that the store has answered
        self.heard_at = times.registered_at
        """When the last answered beat was sent, by the monotonic clock: the lease began no earlier."""

    @property
    def ident(self) -> int | None:
        """Its thread."""
        return self._thread.ident

    def start(self) -> None:
        """Start the thread; the registration itself counts as the first beat."""
        self._thread.start()

    async def stop(self) -> None:
        """Stop the heartbeats, and wait for the thread to close its connection."""
        self._stopped.set()
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(wake.set)
        deadline = self._owner.time() + _CLOSE_TIMEOUT_SECONDS
        # Handlers may occupy all of asyncio's threads, so none of them may be free to wait for this one.
        while self._thread.is_alive() and self._owner.time() < deadline:  # noqa: ASYNC110 - closing is rare
            await asyncio.sleep(0.01)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_until_stopped())
        except Exception as error:  # noqa: BLE001 - without heartbeats the worker must not continue
            self._emit_trouble(error, _RETRY_SECONDS)
            self._stopped.wait(_RETRY_SECONDS)
        finally:
            if not self._stopped.is_set():
                self._call_owner(self._on_lost)

    async def _beat_until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        try:
            while not self._stopped.is_set():
                wait = self._interval
                try:
                    if not await self._beat():
                        return
                except Exception as error:  # noqa: BLE001 - without an answer the worker counts as alive
                    wait = min(_RETRY_SECONDS, self._interval)
                    self._emit_trouble(error, wait)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), wait)
        finally:
            await self._store.close()

    async def _beat(self) -> bool:
        sent_at = self._clock.monotonic()
        with self.call:
            if not self._opened:
                await self._store.open()
                self._opened = True
            async with asyncio.timeout(self._limit):
                is_alive = await self._store.beat(self._worker_id)
        self.beats += 1
        if is_alive:
            self.heard_at = sent_at
        return is_alive

    _opened = False

    def _emit_trouble(self, error: Exception, wait: float) -> None:
        trouble = StoreTrouble("heartbeat", f"{type(error).__name__}: {error}", wait)
        self._call_owner(partial(self._emitter.emit, trouble))

    def _call_owner(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the worker's loop has ended
            self._owner.call_soon_threadsafe(what)
