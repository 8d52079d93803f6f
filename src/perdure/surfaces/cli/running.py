"""One worker process: it works until it is told to stop, and closes in good order."""

from __future__ import annotations

import asyncio
import signal
from typing import Final

from perdure.app import App
from perdure.lifecycle.endings import EXIT_OK, EXIT_RECYCLED
from perdure.worker.settings import WorkerSettings
from perdure.worker.worker import Worker

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


async def run_worker(app: App, settings: WorkerSettings) -> int:
    """Work until SIGTERM or SIGINT, then let running jobs finish within the stop timeout; the exit code.

    A second signal hurries: what still runs is asked to stop, and its jobs go back to the queue at no cost.
    """
    app.log_events()
    async with app:
        worker = await app.worker(settings)
        signals = _Signals(worker)
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.add_signal_handler(number, signals.arrived)
        try:
            await worker.run()
        finally:
            for number in _STOPPING:
                loop.remove_signal_handler(number)
        return EXIT_RECYCLED if worker.recycled else EXIT_OK


class _Signals:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._told = False

    def arrived(self) -> None:
        if self._told:
            self._worker.hurry()
        self._told = True
        self._worker.stop()
