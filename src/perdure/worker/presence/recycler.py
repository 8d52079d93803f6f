"""Closes a worker cleanly before it grows too old or too large: a fresh process replaces it.

Running jobs may finish within the worker's stop timeout; the others go back to the queue without using an attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.worker.isolation.memory import resident_bytes
from perdure.worker.settings import WorkerSettings

_MIB = 1024 * 1024


class Recycler(Loop[str | None]):
    """Checks twice a second, so that a busy worker runs somewhat more jobs than its limit."""

    name = "recycler"
    interval = timedelta(milliseconds=500)

    def __init__(
        self,
        emitter: Emitter,
        settings: WorkerSettings,
        finished: Callable[[], int],
        recycle: Callable[[str], None],
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        super().__init__(emitter)
        self._most_jobs = settings.recycle_after_jobs
        self._most_mb = settings.recycle_above_mb
        self._finished = finished
        self._recycle = recycle
        self._resident = resident

    async def tick(self) -> str | None:
        """Request a fresh process if a limit is reached; returns the reason, or None."""
        why = self._why()
        if why is not None:
            self._recycle(why)
        return why

    def _why(self) -> str | None:
        if self._most_jobs is not None and (finished := self._finished()) >= self._most_jobs:
            return f"{finished} jobs done, {self._most_jobs} allowed"
        if self._most_mb is not None and (resident := self._resident() // _MIB) > self._most_mb:
            return f"{resident} MB in use, {self._most_mb} allowed"
        return None
