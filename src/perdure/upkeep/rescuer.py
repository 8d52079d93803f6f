"""Brings back the jobs of dead workers.

A worker is dead when its lease has run out by the database's clock, or, at once, when its process is seen to be gone
from this host. Never because of a job's age: a job may run for days. What a worker's death means for each of its jobs
is decided by the same function as everything else, and written under the dead claim's own token: should the worker be
alive after all and finish first, the rescue is what comes too late.

While the database is away, or takes no writes, nobody can beat. So after an outage all workers are given one sweep's
time to be heard again before any of them is taken for dead.

To look for what the dead hold is to walk past all that the living hold, and past what vacuum has not yet cleared away.
Nobody claims for a dead worker, so one that was seen to hold nothing is not asked after again: the walk is made when
somebody has died since, be it under an id that was used before (a database may be an older copy of itself), after an
outage (such a copy may have taken over), and every ten minutes, should a worker not be in the register at all.

What the dead were lent of gates is taken back as well, once their jobs are.

Jobs come back at once, unless their queue has an Opening: then the usher lets them in one by one.
"""

from __future__ import annotations

import os
import random
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.duration import LONGEST, format_duration
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Orphan
from perdure.domain.jobs.outcome import Crashed, Failure
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.errors import StoreError, StoreUnavailable
from perdure.events import ClockJumped, Emitter, JobDied, JobsRescued, RescueFailed, WorkersBuried
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.process.identity import is_alive, this_host
from perdure.policy.decide import decide
from perdure.policy.opening import Opening
from perdure.storage.port import Store
from perdure.upkeep.ramped_rescue import Usher
from perdure.upkeep.steadiness import Steadiness

_PAGE: Final = 500
_WALK_EVERY: Final = 600.0  # seconds, although nobody has died
_SPREAD: Final = 1.1  # a tick may come so much later than its interval says


class Rescued(Struct, frozen=True):
    """What one sweep did; `returning` are those that will be ready when their time on the ramp has come."""

    buried: int = 0
    ready: int = 0
    dead: int = 0
    failed: int = 0
    returning: int = 0


class Rescuer(Loop[Rescued]):
    """Looks for processes gone from this host every second, and for silent workers anywhere every sweep."""

    name = "rescuer"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        clock: Clock,
        lease: timedelta,
        sweep: timedelta,
        on_ready: Callable[[], None],
        on_returning: Callable[[], None] = lambda: None,
        openings: Callable[[str], Opening | None] = lambda _: None,
        *,
        audit: Collection[Audited] = frozenset(),
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._clock = clock
        self._lease = lease
        self._sweep = sweep.total_seconds()
        self.interval = min(self.interval, sweep / _SPREAD)
        self._on_ready = on_ready
        self._on_returning = on_returning
        self._openings = openings
        self._audit = audit
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._rounds: dict[str, datetime] = {}
        self._random = random.Random()  # noqa: S311 - jitter hides nothing
        self._next_sweep = 0.0
        self._was_away = False
        self._steadiness = Steadiness(lease / 2)
        self._trusted_from = 0.0
        self._empty_handed: frozenset[WorkerId] = frozenset()
        self._next_walk = 0.0

    async def tick(self) -> Rescued:
        """Bury who is dead, then bring back what the dead hold."""
        try:
            buried, due = await self._bury()
        except StoreError:
            self._was_away = True
            raise
        if not (buried or due):
            return Rescued()
        if buried:
            self._next_walk = 0.0
        rescued = await self._rescue_all()
        if await self._store.recall_loans():
            self._on_ready()
        return replace(rescued, buried=buried)

    async def _bury(self) -> tuple[int, bool]:
        """Bury who is seen to be gone, and if a sweep is due, whoever is silent; how many, and whether it was due."""
        gone = await self._store.bury_gone(this_host(), is_alive)
        if gone:
            self.emitter.emit(WorkersBuried(tuple(worker.name for worker in gone), "process is gone from this host"))
        if self._was_away:
            await self._store.bury_silent(LONGEST)  # nobody, but it shows whether one can write
            self._was_away = False
            self._next_sweep = self._clock.monotonic() + self._sweep
            self._next_walk = 0.0
        next_tick = self._clock.monotonic() + self.interval.total_seconds() * _SPREAD
        due = next_tick > self._next_sweep  # to wait for it would be too late
        if not due:
            return len(gone), False
        self._next_sweep = self._clock.monotonic() + self._sweep
        return len(gone) + await self._bury_silent(), True

    async def _bury_silent(self) -> int:
        """Bury whoever's lease ran out. After the clock has jumped everybody first gets the time to beat by it."""
        jump = self._steadiness.jump(await self._store.now(), self._clock.monotonic())
        if jump is not None:
            self._trusted_from = self._clock.monotonic() + self._lease.total_seconds()
            self.emitter.emit(ClockJumped(jump.total_seconds()))
        if self._clock.monotonic() < self._trusted_from:
            return 0
        silent = await self._store.bury_silent(self._lease)
        if silent:
            self.emitter.emit(WorkersBuried(tuple(worker.name for worker in silent), "lease ran out"))
        return len(silent)

    def _all_are_empty_handed(self, gone: frozenset[WorkerId]) -> bool:
        return gone <= self._empty_handed and self._clock.monotonic() < self._next_walk

    async def _rescue_all(self) -> Rescued:
        gone = await self._store.dead_workers()
        if self._all_are_empty_handed(gone):
            return Rescued()
        went: Counter[JobState] = Counter()
        tried = 0

        async def write(moves: list[Transition]) -> list[Transition]:
            nonlocal tried
            tried += len(moves)
            written = await self._write(moves)
            went.update(move.to for move in written)
            self._tell(written)
            return written

        usher = Usher(self._store, self.emitter, self._openings, self._holder, self._rounds, write)
        after: JobId | None = None
        while page := await self._store.orphans(_PAGE, after):
            after = page[-1].claim.job_id
            if at_once := await usher.gather([self._decide(orphan) for orphan in page]):
                await write(at_once)
        found_none = after is None
        self._empty_handed = gone if found_none else frozenset()
        self._next_walk = self._clock.monotonic() + (_WALK_EVERY if found_none else 0)
        await usher.let_in()
        ready, dead, returning = (went[state] for state in (JobState.READY, JobState.DEAD, JobState.RETRYING))
        if went:
            self.emitter.emit(JobsRescued(ready + returning, dead))
        if ready:
            self._on_ready()
        if returning:
            self._on_returning()
        return Rescued(ready=ready, dead=dead, failed=tried - went.total(), returning=returning)

    def _tell(self, written: list[Transition]) -> None:
        self._store.ring({move.claim.queue for move in written if move.to is JobState.READY})
        for move in written:
            if move.to is JobState.DEAD:
                self.emitter.emit(JobDied.by(move))

    def _decide(self, orphan: Orphan) -> Transition:
        silent = format_duration(timedelta(seconds=round(orphan.silent_for.total_seconds())))
        cause = f"worker {orphan.worker} died while it held the job (silent for {silent})"
        outcome = Crashed(Failure("ProcessCrashed", cause))
        return decide(orphan.claim, outcome, None, self._clock.now(), self._random)

    async def _write(self, transitions: list[Transition]) -> list[Transition]:
        """Write a page; if the store refuses it whole, job by job, so that one bad row cannot hold up the others."""
        try:
            answer = await self._store.acknowledge(transitions, self._audit)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one job, the others come back
            if len(transitions) == 1:
                self.emitter.emit(RescueFailed(transitions[0].claim.job_id, f"{type(error).__name__}: {error}"))
                return []
            return [done for transition in transitions for done in await self._write([transition])]
        stale = {(claim.job_id, claim.token) for claim in answer.stale}
        return [t for t in transitions if (t.claim.job_id, t.claim.token) not in stale]
