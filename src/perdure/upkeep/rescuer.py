"""Rescues the jobs of dead workers.

A worker is dead when its lease has run out by the database's clock, or, at once, when its process is seen to be gone
from this host. Never because of a job's age: a job may run for days. `decide` says what a worker's death means for each
of its jobs, as for every other outcome, and it is written under the dead claim's own token: if the worker is alive
after all and finishes first, the rescue is stale.

While the database is away, or accepts no writes, no worker can send a heartbeat. So after an outage all workers get the
time of one sweep to send one before any of them is declared dead.

Finding the leases of dead workers means walking past all live leases, and past what vacuum has not yet removed. A dead
worker gets no new claims, so one that was seen to hold nothing is not checked again: the walk is made when a worker has
died since, even under an id that was used before (a database may be an older copy of itself), after an outage (such a
copy may have taken over), and every ten minutes, in case a worker is not registered at all.

The loans of dead workers are taken back as well, after their jobs.

Jobs come back at once, unless their queue has an Opening: then `RampedRescue` brings them back one by one.
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
from perdure.domain.duration import LONGEST_DURATION, format_duration
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
from perdure.upkeep.ramped_rescue import RampedRescue
from perdure.upkeep.steadiness import Steadiness

_ORPHANS_PER_CALL: Final = 500
_WALK_INTERVAL_SECONDS: Final = 600.0  # seconds, even if no worker has died
_TICK_LATENESS_FACTOR: Final = 1.1  # a tick may come this much later than its interval says


class Rescued(Struct, frozen=True):
    """What one sweep did; `returning` are those that will be ready at their time on the ramp."""

    buried: int = 0
    ready: int = 0
    dead: int = 0
    failed: int = 0
    returning: int = 0


class RescueSettings(Struct, frozen=True, kw_only=True):
    """When a worker is dead, how often to look for dead ones, and how their jobs come back."""

    lease: timedelta
    sweep: timedelta
    openings: Callable[[str], Opening | None] = lambda _: None  # by queue; None: at once
    audit: Collection[Audited] = frozenset()


class RescueOwner(Struct, frozen=True, kw_only=True, eq=False):
    """What a rescuer reports to its owner."""

    on_ready: Callable[[], None]  # jobs are ready again
    on_returning: Callable[[], None] = lambda: None  # jobs are parked, and come back soon
    on_crashed: Callable[[Transition, datetime], None] | None = None  # an attempt ended with its process


class Rescuer(Loop[Rescued]):
    """Checks for processes gone from this host every second, and for workers without heartbeat every sweep."""

    name = "rescuer"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        clock: Clock,
        settings: RescueSettings,
        owner: RescueOwner,
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._clock = clock
        self._lease = settings.lease
        self._sweep = settings.sweep.total_seconds()
        self.interval = min(self.interval, settings.sweep / _TICK_LATENESS_FACTOR)
        self._on_ready = owner.on_ready
        self._on_returning = owner.on_returning
        self._openings = settings.openings
        self._audit = settings.audit
        self._on_crashed = owner.on_crashed
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._rounds: dict[str, datetime] = {}
        self._random = random.Random()  # noqa: S311 - jitter hides nothing
        self._next_sweep = 0.0
        self._was_away = False
        self._steadiness = Steadiness(settings.lease / 2)
        self._trusted_from = 0.0
        self._empty_handed: frozenset[WorkerId] = frozenset()
        self._next_walk = 0.0

    async def tick(self) -> Rescued:
        """Declare dead workers dead, then rescue their jobs."""
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
        """Declare dead the workers whose process is gone and, if a sweep is due, those without heartbeat.

        Returns how many, and whether a sweep was due.
        """
        gone = await self._store.bury_gone(this_host(), is_alive)
        if gone:
            self.emitter.emit(WorkersBuried(tuple(worker.name for worker in gone), "process is gone from this host"))
        if self._was_away:
            await self._store.bury_silent(LONGEST_DURATION)  # none, but it shows whether the database accepts writes
            self._was_away = False
            self._next_sweep = self._clock.monotonic() + self._sweep
            self._next_walk = 0.0
        next_tick = self._clock.monotonic() + self.interval.total_seconds() * _TICK_LATENESS_FACTOR
        due = next_tick > self._next_sweep  # waiting for it would be too late
        if not due:
            return len(gone), False
        self._next_sweep = self._clock.monotonic() + self._sweep
        return len(gone) + await self._bury_silent(), True

    async def _bury_silent(self) -> int:
        """Declare dead the workers whose lease ran out. After a clock jump they first get time for a heartbeat."""
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
            self._emit_rescued(written)
            await self._count(written)
            return written

        ramp = RampedRescue(self._store, self.emitter, self._openings, self._holder, self._rounds, write)
        after: JobId | None = None
        while page := await self._store.orphans(_ORPHANS_PER_CALL, after):
            after = page[-1].claim.job_id
            if at_once := await ramp.gather([self._decide(orphan) for orphan in page]):
                await write(at_once)
        found_none = after is None
        self._empty_handed = gone if found_none else frozenset()
        self._next_walk = self._clock.monotonic() + (_WALK_INTERVAL_SECONDS if found_none else 0)
        await ramp.let_in()
        ready, dead, returning = (went[state] for state in (JobState.READY, JobState.DEAD, JobState.RETRYING))
        if went:
            self.emitter.emit(JobsRescued(ready + returning, dead))
        if ready:
            self._on_ready()
        if returning:
            self._on_returning()
        return Rescued(ready=ready, dead=dead, failed=tried - went.total(), returning=returning)

    def _emit_rescued(self, written: list[Transition]) -> None:
        self._store.ring({move.claim.queue for move in written if move.to is JobState.READY})
        for move in written:
            if move.to is JobState.DEAD:
                self.emitter.emit(JobDied.by(move))

    async def _count(self, written: list[Transition]) -> None:
        if self._on_crashed is not None and written:
            now = await self._store.now()
            for move in written:
                self._on_crashed(move, now)

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
        except Exception as error:  # noqa: BLE001 - one bad job must not keep the others from coming back
            if len(transitions) == 1:
                self.emitter.emit(RescueFailed(transitions[0].claim.job_id, f"{type(error).__name__}: {error}"))
                return []
            return [done for transition in transitions for done in await self._write([transition])]
        stale = {(claim.job_id, claim.token) for claim in answer.stale}
        return [t for t in transitions if (t.claim.job_id, t.claim.token) not in stale]
