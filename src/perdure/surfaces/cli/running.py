"""One worker process: it works until it is told to stop, and closes in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from perdure.app import App
from perdure.clock import Clock, SystemClock
from perdure.lifecycle.endings import EXIT_OK, EXIT_RECYCLED
from perdure.worker.settings import WorkerSettings

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_SAME_WISH: Final = 1.0


async def run_worker(app: App, settings: WorkerSettings) -> int:
    """Work until SIGTERM or SIGINT, then let running jobs finish within the stop timeout; the exit code.

    A second signal, a second or more after the first, hurries: what still runs is asked to stop, and its jobs go back
    to the queue at no cost.
    """
    app.log_events()
    async with app:
        worker = await app.worker(settings)
        signals = StopSignals(worker.stop, worker.hurry, SystemClock())
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.add_signal_handler(number, signals.arrived)
        try:
            await worker.run()
        finally:
            for number in _STOPPING:
                loop.remove_signal_handler(number)
        return EXIT_RECYCLED if worker.recycled else EXIT_OK


class StopSignals:
    """What signals to stop mean: the first one stops, a later one hurries.

    One wish may arrive twice: systemd signals every process of a service, and the supervisor passes the same signal on.
    So what comes within a second of the first says nothing new.
    """

    def __init__(self, stop: Callable[[], None], hurry: Callable[[], None], clock: Clock) -> None:
        self._stop = stop
        self._hurry = hurry
        self._clock = clock
        self._first: float | None = None

    def arrived(self) -> None:
        """Act on one signal."""
        if self._first is None:
            self._first = self._clock.monotonic()
            self._stop()
        elif self._clock.monotonic() - self._first >= _SAME_WISH:
            self._hurry()
