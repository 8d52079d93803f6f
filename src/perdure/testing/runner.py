"""Runs ready jobs with the parts of a worker, and ends when none is left.

Claims, gates, executor, decisions and acknowledgements are the worker's own. What is left out is what only a
long-running worker in a fleet needs: heartbeats, polling, rescue and pruning.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState
from perdure.storage.records import Wanted
from perdure.testing.caller import WAITING, CallersThread
from perdure.worker.attempt.running import Stop
from perdure.worker.claiming.slots import Slots
from perdure.worker.execution.threads import Execute, Finish, ThreadCrew
from perdure.worker.stages import PAUSES
from perdure.worker.surroundings import Surroundings
from perdure.worker.wiring.attempts import Owner, wire_attempts


class Runner:
    """One run over the ready jobs of a store, on the running loop."""

    def __init__(
        self,
        around: Surroundings,
        worker_id: WorkerId,
        chance: random.Random,
    ) -> None:
        settings = around.settings
        self._store = around.store
        self._worker_id = worker_id
        self._concurrency = settings.concurrency
        self._ended = asyncio.Event()
        parts = wire_attempts(
            around,
            Slots(settings.queues, settings.concurrency, settings.claim_batch),
            Owner(on_start=self._note, on_free=self._ended.set),
            make_threads=_make_threads,
            short_wait=timedelta(0),  # the clock stands still here: the test itself moves it
            chance=chance,
        )
        self._pauses, self._reports, self._acknowledger = parts.pauses, parts.reports, parts.acknowledger
        self._executor, self._gatekeeper = parts.executor, parts.gatekeeper
        self._start = parts.stages.into(PAUSES)  # no quarantine: the test decides which jobs run side by side
        self.jobs: dict[JobId, None] = {}  # an ordered set: the jobs that ran, by their first attempt
        self.attempts = 0

    @property
    def paused(self) -> frozenset[str]:
        """Queues whose jobs are not run."""
        return self._pauses.queues

    async def run(self, queues: Iterable[str] | None, limit: int, until: Callable[[], bool]) -> None:
        """Run until no job is ready in these queues (None: in any), `until` holds, or `limit` attempts are made.

        When it returns, every ended attempt is recorded.
        """
        only = None if queues is None else frozenset(queues)
        self._pauses.learn(await self._store.pauses())
        while True:
            await self._settle()
            if until():
                break
            room = min(self._concurrency - len(self._executor.running), limit - self.attempts)
            claims = await self._claim(only, room) if room > 0 else []
            if claims:
                self._start(claims)
            elif self._executor.running:
                await self._one_ended()
            else:
                break
        while self._executor.running:
            await self._one_ended()
        await self._settle()

    async def close(self) -> None:
        """Release running jobs if the run was cut short, and end threads and processes."""
        for running in list(self._executor.running):
            self._executor.stop(running, Stop.CLOSING)
        await self._gatekeeper.close()
        await self._reports.close()
        await self._executor.close()

    async def _settle(self) -> None:
        """Wait until gates have answered, all ended attempts are recorded, and their waiters are awake."""
        await self._gatekeeper.drain()
        await self._acknowledger.drain()
        await self._reports.drain()
        await self._store.settle_joined()

    def _note(self, claims: Sequence[Claim]) -> None:
        self.attempts += len(claims)
        self.jobs |= dict.fromkeys(claim.job_id for claim in claims)

    async def _one_ended(self) -> None:
        await self._ended.wait()
        self._ended.clear()

    async def _claim(self, only: frozenset[str] | None, room: int) -> list[Claim]:
        """Claim from the first queue that has a ready job."""
        for count in await self._store.counts(cap=1):
            if count.queue in self._pauses.queues:
                continue
            if count.state is JobState.READY and (only is None or count.queue in only):
                return await self._store.claim(self._worker_id, [Wanted(count.queue, room)])
        return []


def _make_threads(size: int, execute: Execute, finish: Finish, loop: asyncio.AbstractEventLoop) -> ThreadCrew:
    """Run sync handlers in the waiting thread, if there is one."""
    caller = WAITING.get()
    return ThreadCrew(size, execute, finish, loop) if caller is None else CallersThread(caller, execute, finish, loop)
