"""Keeps a job that kills its workers from taking others with it.

When a process dies, every job that it held counts a crash, since nobody can tell which one was the killer. Held
together again and again, the innocent would reach their limit together with the guilty. So a job that may not crash
once more (its last chance, after a crash) never shares a process with another such job: one is started at a time, and
the others are given back, at no cost, before it starts. The killer then dies alone, and the others get their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import paused
from perdure.domain.operate.audit import Audited
from perdure.events import Emitter
from perdure.lifecycle.outage import ANY_ERROR, Outage
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.claims import ClaimStore

_WAIT: Final = timedelta(milliseconds=100)
_LONGEST: Final = 30.0  # seconds after which one that runs is no longer suspected of killing at once
_WHY: Final = "its last chance after crashes, apart from other such jobs"


class Quarantine:
    """Stands between the claims of a worker and their start."""

    def __init__(
        self,
        store: ClaimStore,
        emitter: Emitter,
        start: Callable[[Sequence[Claim]], None],
        is_running: Callable[[Claim], bool],
        on_given_back: Callable[[], None],
        outage: OutageLimits = DEFAULT_OUTAGE,
        *,
        audit: Collection[Audited] = frozenset(),
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._start = start
        self._is_running = is_running
        self._on_given_back = on_given_back
        self._limits = outage
        self._audit = audit
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.claims: set[Claim] = set()
        """Those that were not started or given back yet."""
        self._inmate: Claim | None = None
        self._entered = 0.0

    def start(self, claims: Sequence[Claim]) -> None:
        """Start what is above suspicion at once, and of the rest one at a time."""
        suspects = [claim for claim in claims if claim.crashes and claim.crashes + 1 >= claim.crash_limit]
        if not suspects:
            self._start(claims)
            return
        self._start([claim for claim in claims if claim not in suspects])
        self.claims.update(suspects)
        task = asyncio.get_running_loop().create_task(self._admit(suspects))
        self._tasks.add(task)
        task.add_done_callback(partial(self._settled, suspects))

    async def settle(self) -> None:
        """Wait until every claim was started or given back."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Leave what is not settled to those who rescue."""
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
                self._inmate, self._entered = chosen[0], asyncio.get_running_loop().time()
                self._start(chosen)

    def _is_taken(self) -> bool:
        if self._inmate is None or not self._is_running(self._inmate):
            return False
        return asyncio.get_running_loop().time() - self._entered < _LONGEST

    async def _give_back(self, claims: list[Claim]) -> None:
        if not claims:
            return
        moves = [paused(claim, Reason.RELEASED, _WAIT, _WHY) for claim in claims]
        outage = Outage("quarantine", self._emitter, self._limits)
        await outage.outlast(
            lambda: self._store.acknowledge(moves, self._audit), ANY_ERROR
        )  # nobody else knows of them
        self._on_given_back()
