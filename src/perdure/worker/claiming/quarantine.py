"""Keeps a job that kills its workers from taking others with it.

When a process dies, every job that it ran counts a crash, because it is unknown which job killed it. If they ran
together again and again, harmless jobs would reach their limit together with the one that crashes. So a job that has
crashed and would die of another crash never shares a process with another such job: one is started at a time, and the
others are given back, at no cost, before it starts. The killer then dies alone, and the others get their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from perdure.domain.jobs.job import Claim
from perdure.events import Emitter
from perdure.lifecycle.outage import ANY_ERROR, Outage
from perdure.policy.decide import put_off
from perdure.storage.claims import ClaimStore
from perdure.worker.settings import WorkerSettings

_RETURN_AFTER: Final = timedelta(milliseconds=100)
_SUSPECT_SECONDS: Final = 30.0  # an attempt that has run so long is no longer suspected of killing at once
_WHY: Final = "its last chance after crashes, apart from other such jobs"


class Quarantine:
    """Holds back claims between their claim and their start."""

    def __init__(
        self,
        store: ClaimStore,
        emitter: Emitter,
        settings: WorkerSettings,
        *,
        start: Callable[[Sequence[Claim]], None],
        is_running: Callable[[Claim], bool],
        on_given_back: Callable[[], None],
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._start = start
        self._is_running = is_running
        self._on_given_back = on_given_back
        self._limits = settings.outage
        self._audit = settings.audit
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.claims: set[Claim] = set()
        """Those that were not started or given back yet."""
        self._suspect: Claim | None = None
        self._entered = 0.0

    def start(self, claims: Sequence[Claim]) -> None:
        """Start jobs without crashes at once, and the others one at a time."""
        suspects = [claim for claim in claims if claim.crashes and claim.crashes + 1 >= claim.crash_limit]
        if not suspects:
            self._start(claims)
            return
        self._start([claim for claim in claims if claim not in suspects])
        self.claims.update(suspects)
        task = asyncio.get_running_loop().create_task(self._admit(suspects))
        self._tasks.add(task)
        task.add_done_callback(partial(self._settled, suspects))

    async def drain(self) -> None:
        """Wait until every claim was started or given back."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Leave unfinished claims to the rescuer."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _settled(self, suspects: list[Claim], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.claims.difference_update(suspects)

    async def _admit(self, suspects: list[Claim]) -> None:
        async with self._turn:
            chosen = [] if self._is_taken() else suspects[:1]
            await self._give_back(suspects[len(chosen) :])
            if chosen:
                self._suspect, self._entered = chosen[0], asyncio.get_running_loop().time()
                self._start(chosen)

    def _is_taken(self) -> bool:
        if self._suspect is None or not self._is_running(self._suspect):
            return False
        return asyncio.get_running_loop().time() - self._entered < _SUSPECT_SECONDS

    async def _give_back(self, claims: list[Claim]) -> None:
        if not claims:
            return
        moves = [put_off(claim, _RETURN_AFTER, _WHY) for claim in claims]
        outage = Outage("quarantine", self._emitter, self._limits)
        write = partial(self._store.acknowledge, moves, self._audit)
        await outage.outlast(write, ANY_ERROR)  # no other worker knows of them
        self._on_given_back()
