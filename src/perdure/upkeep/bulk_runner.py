"""Takes up bulk commands whose runner is gone, and works on them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Final

from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.operate.bulk.batches import BulkBatches
from perdure.storage.operate.bulk import BulkHold, BulkState
from perdure.storage.port import Store

_BATCHES_PER_TICK: Final = 20  # a worker that closes waits for the end of it
_WAIT_AFTER_WORK: Final = timedelta(milliseconds=20)


class BulkRunner(Loop[int]):
    """Runs in every worker and in every desk process: a bulk command continues while one of them runs.

    Batches are short transactions; between them other writers get their turn. `wake` it when a command was started.
    """

    name = "bulk runner"
    interval = timedelta(seconds=2)

    def __init__(self, store: Store, emitter: Emitter, runner: str) -> None:
        super().__init__(emitter)
        self._batches = BulkBatches(store, f"{runner} {secrets.token_hex(4)}")
        self._hold: BulkHold | None = None

    async def tick(self) -> int:
        """Do some batches of one command; how many."""
        hold, self._hold = self._hold, None  # taken up again after an error
        hold = hold or await self._batches.take()
        done = 0
        while hold is not None and hold.view.state is BulkState.RUNNING and done < _BATCHES_PER_TICK:
            hold = await self._batches.do_next(hold)
            done += 1
        self._hold = hold if hold is not None and hold.view.state is BulkState.RUNNING else None
        return done

    def next_wait(self, did: int) -> timedelta:
        """Soon again while there is work."""
        return _WAIT_AFTER_WORK if did else self.interval
