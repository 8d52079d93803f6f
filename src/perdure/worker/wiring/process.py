"""The registration record of a worker's process, and the watchdog over its event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable

from perdure.domain.worker import NewWorker
from perdure.lifecycle.process.identity import this_process
from perdure.lifecycle.process.stacks import Occupied
from perdure.lifecycle.process.watchdog import StoreCall, Watchdog, WatchdogLimits
from perdure.version import __version__
from perdure.worker.settings import WorkerSettings
from perdure.worker.surroundings import Surroundings


def new_worker(settings: WorkerSettings) -> NewWorker:
    """This process as a worker to register."""
    process = this_process()
    return NewWorker(
        name=settings.name or f"{socket.gethostname()}:{process.pid}",
        process=process,
        queues=tuple(queue.name for queue in settings.queues),
        concurrency=settings.concurrency,
        version=__version__,
    )


def watchdog_for(
    around: Surroundings, calls: tuple[StoreCall, ...], occupied: Callable[[], Iterable[Occupied]]
) -> Watchdog:
    """A watchdog over the running event loop and these calls of the store."""
    settings = around.settings
    return Watchdog(
        asyncio.get_running_loop(),
        around.emitter,
        around.clock,
        limits=WatchdogLimits(
            blocked_after=settings.blocked_after,
            slow_store_after=settings.slow_store_after,
            beat_within=min(2 * settings.heartbeat, settings.lease - settings.heartbeat / 2),
        ),
        calls=calls,
        occupied=occupied,
    )
