"""Detects running workers with the same name: harmless, but confusing for operators."""

from __future__ import annotations

from contextlib import suppress

from perdure.domain.worker import NewWorker
from perdure.errors import StoreError
from perdure.events import Emitter, NameShared
from perdure.lifecycle.process.identity import is_alive
from perdure.storage.fleet.workers import WorkerStore


async def report_duplicate_names(me: NewWorker, store: WorkerStore, emitter: Emitter) -> None:
    """Emit an event if another live worker has this name."""
    with suppress(StoreError):  # not worth a failure
        others = [other.process for other in await store.workers() if other.name == me.name and other.dead_at is None]
        alive = [process for process in others if process != me.process and is_alive(process)]
        if alive:
            who = tuple(f"{process.host.partition('/')[0]} pid {process.pid}" for process in alive)
            emitter.emit(NameShared(me.name, who))
