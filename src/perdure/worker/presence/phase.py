"""The phase of a worker: opening, open, quiet, closing.

A worker may be quiet for several reasons at once, such as a signal and an operator's request; it claims again when none
is left. The phase is also written to the store, for operators only: if that fails, nothing else is affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.worker import Phase
from perdure.events import Emitter, WorkerLoud, WorkerQuiet
from perdure.storage.fleet.workers import WorkerStore

BY_SIGNAL: Final = "a signal"
BY_OPERATOR: Final = "an operator"


class WorkerPhase:
    """The phase of one worker. `running` counts its running attempts, `wake` makes it poll again."""

    def __init__(
        self, name: str, store: WorkerStore, emitter: Emitter, running: Callable[[], int], wake: Callable[[], None]
    ) -> None:
        self._name = name
        self._store = store
        self._emitter = emitter
        self._running = running
        self._wake = wake
        self._because: set[str] = set()
        self._is_opening = True
        self._is_closing = False
        self._worker_id: WorkerId | None = None
        self._shown: Phase | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def phase(self) -> Phase:
        """The current phase."""
        if self._is_closing:
            return Phase.CLOSING
        if self._because:
            return Phase.QUIET
        return Phase.OPENING if self._is_opening else Phase.OPEN

    def is_quiet(self, because: str | None = None) -> bool:
        """Whether the worker is quiet, for this reason or for any."""
        return bool(self._because) if because is None else because in self._because

    def entered(self, worker_id: WorkerId | None) -> None:
        """Set the id of the worker; None: it has lost its id."""
        self._worker_id = worker_id
        self._shown = None
        self.show()

    def opened(self) -> None:
        """The worker is open at full concurrency."""
        self._is_opening = False
        self.show()

    def quiet(self, because: str) -> None:
        """Stop claiming; running jobs continue."""
        was_quiet = self.is_quiet()
        self._because.add(because)
        if not was_quiet and not self._is_closing:
            self._emitter.emit(WorkerQuiet(self._name, because, self._running()))
            self.show()

    def loud(self, because: str) -> None:
        """Remove this reason to be quiet."""
        if because not in self._because:
            return
        self._because.discard(because)
        if not self.is_quiet() and not self._is_closing:
            self._emitter.emit(WorkerLoud(self._name, because))
            self._wake()
            self.show()

    def closing(self) -> None:
        """The worker has begun to close."""
        self._is_closing = True
        self.show()

    def show(self) -> None:
        """Write the phase to the store in the background, if it has changed."""
        if self._task is None and self._worker_id is not None and self._shown is not self.phase:
            self._task = asyncio.get_running_loop().create_task(self._report(self._worker_id))

    async def close(self) -> None:
        """Stop writing the phase."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _report(self, worker_id: WorkerId) -> None:
        try:
            while worker_id == self._worker_id and self._shown is not (phase := self.phase):
                await self._store.report(worker_id, phase)
                self._shown = phase
        except Exception:  # noqa: BLE001, S110 - it is for show; the next look of the canceller tries again
            pass
        finally:
            self._task = None
