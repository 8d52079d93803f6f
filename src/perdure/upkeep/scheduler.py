"""Enqueues the jobs of schedules when they are due.

Every process does this, and none needs to lead: the first process applies a schedule's step, in one transaction with
the jobs and the record of their nominal times (G6). A second process finds the schedule moved on.

The database's clock decides. When it is set back, schedules that are ahead of it are set back too, so that none stays
silent until the clock has caught up; the record prevents that handled nominal times are handled again. Another process
may still be about to move a schedule on by the time before: so a process that has found one ahead looks again, until
there is none, and a step to future times is not applied.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.jobs.job import Intake, Receipt
from perdure.domain.schedule import Advance, Fate, Fire, Firing, Schedule, ScheduleView
from perdure.errors import ArgumentError
from perdure.events import Emitter, ScheduleBroken, ScheduleFired, ScheduleMissed, ScheduleOverlapped
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.hooks.tracing import Enqueuing
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.retries.jitter import Randomness
from perdure.policy.schedules.agenda import Agenda, agenda
from perdure.policy.schedules.nominal import job_of
from perdure.policy.schedules.timetable import Timetable, timetable
from perdure.storage.port import Store
from perdure.upkeep.steadiness import Steadiness

_SCHEDULES_PER_CALL: Final = 500
_SHORTEST_WAIT: Final = timedelta(milliseconds=5)
_CLOCK_JUMP_LIMIT: Final = timedelta(seconds=5)
_LOOK_BACK: Final = timedelta(minutes=1)
_INSTANT: Final = timedelta(microseconds=1)


class Fired(Struct, frozen=True):
    """What one tick did, and how long until the next schedule is due."""

    fires: tuple[Fire, ...] = ()
    more: bool = False
    next_in: timedelta | None = None


class Scheduler(Loop[Fired]):
    """Looks every second, and sooner when it knows that a schedule is due sooner. Fires those `declared` here.

    Its constructor takes seven values, of which `declared` are names, and only a sandbox or a test gives `chance`.
    """

    name = "scheduler"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        clock: Clock,
        declared: Collection[str],
        on_ready: Callable[[], None],
        chance: Randomness | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._hooks = hooks
        self._clock = clock
        self._declared = declared
        self._on_ready = on_ready
        self._random = chance or random.Random()  # noqa: S311 - jitter hides nothing
        self._steadiness = Steadiness(_CLOCK_JUMP_LIMIT)
        self._may_be_ahead = True
        self._broken: dict[str, int] = {}  # the version that could not be read

    async def tick(self) -> Fired:
        """Apply the due steps, one batch of them."""
        found = await self._store.due_schedules(_SCHEDULES_PER_CALL, self._declared)
        jump = self._steadiness.jump(found.now, self._clock.monotonic())
        if self._may_be_ahead or (jump is not None and jump < timedelta(0)):
            self._may_be_ahead = await self._put_back(found.now)
        advances = [step for view in found.due if (step := self._step(view, found.now)) is not None]
        fires = await self._fire(advances) if advances else []
        self._emit_fires(fires, found.now, {view.name: view.schedule.kind for view in found.due})
        more = len(found.due) == _SCHEDULES_PER_CALL and bool(advances)
        return Fired(tuple(fires), more or _is_behind(advances, found.now), found.next_in)

    def next_wait(self, did: Fired) -> timedelta:
        """At once while there is a backlog, else until the next known due time."""
        if did.more:
            return timedelta(0)
        if did.next_in is None:
            return self.interval
        return min(self.interval, max(did.next_in, _SHORTEST_WAIT))

    def _step(self, view: ScheduleView, now: datetime) -> Advance | None:
        times = self._times(view)
        if times is None or view.next_at is None:
            return None
        schedule = view.schedule
        owed = agenda(schedule, view.next_at, now, times)
        if owed.missed:
            self._emit_missed(schedule, owed)
        lost = [Firing(nominal_at=time, job=None) for time in owed.let_go]
        fire = [Firing(nominal_at=time, job=job_of(schedule, time, self._random)) for time in owed.fire]
        return Advance(
            name=view.name,
            version=view.version,
            overlap=schedule.overlap,
            expected=view.next_at,
            next_at=owed.next_at,
            firings=(*lost, *fire),
        )

    async def _fire(self, advances: list[Advance]) -> list[Fire]:
        tracer = self._hooks.tracer
        if tracer is None or not any(firing.job for step in advances for firing in step.firings):
            return await self._store.fire(advances)
        with tracer.enqueuing() as enqueuing:
            fires = await self._store.fire([_stamped(step, enqueuing) for step in advances])
            enqueuing.stored([Receipt(fire.job_id, Intake.NEW) for fire in fires if fire.job_id is not None])
            return fires

    async def _put_back(self, now: datetime) -> bool:
        """Set back schedules that are ahead of the clock; returns whether there were any."""
        steps = [step for view in await self._store.schedules() if (step := self._step_back(view, now)) is not None]
        if steps:
            await self._store.fire(steps)
        return bool(steps)

    def _step_back(self, view: ScheduleView, now: datetime) -> Advance | None:
        """The correction of a schedule that was last handled while the clock was ahead; None: it was not."""
        times = self._times(view)
        if times is None or view.next_at is None or not _is_ahead(view, now, times):
            return None
        return Advance(
            name=view.name,
            version=view.version,
            overlap=view.schedule.overlap,
            expected=view.next_at,
            next_at=times.next_after(_since(view, now)),
        )

    def _times(self, view: ScheduleView) -> Timetable | None:
        try:
            return timetable(view.schedule.expression, view.schedule.tz)
        except ArgumentError as error:  # made by another release, or by hand
            if self._broken.get(view.name) != view.version:
                self._broken[view.name] = view.version
                self.emitter.emit(ScheduleBroken(view.name, str(error)))
            return None

    def _emit_fires(self, fires: Iterable[Fire], now: datetime, kinds: Mapping[str, str]) -> None:
        queues = set()
        for fire in fires:
            nominal = fire.nominal_at.isoformat()
            if fire.fate is Fate.FIRED and fire.job_id is not None:
                late = (now - fire.nominal_at).total_seconds()
                queue, kind = fire.queue or "", kinds.get(fire.schedule, "")
                self.emitter.emit(ScheduleFired(fire.schedule, nominal, fire.job_id, late, fire.cause, queue, kind))
                queues.add(queue)
            elif fire.fate is Fate.OVERLAPPED:
                self.emitter.emit(ScheduleOverlapped(fire.schedule, nominal))
        if queues:
            self._store.ring(queues)
            self._on_ready()

    def _emit_missed(self, schedule: Schedule, owed: Agenda) -> None:
        first, last = owed.let_go[0].isoformat(), owed.let_go[-1].isoformat()
        self.emitter.emit(ScheduleMissed(schedule.name, owed.missed, first, last))


def _stamped(step: Advance, enqueuing: Enqueuing) -> Advance:
    firings = tuple(
        firing if firing.job is None else replace(firing, job=enqueuing.stamp(firing.job)) for firing in step.firings
    )
    return replace(step, firings=firings)


def _is_ahead(view: ScheduleView, now: datetime, times: Timetable) -> bool:
    """Whether a schedule was handled beyond now; if it was never handled, whether its next time is too late."""
    if view.last_at is not None:
        return view.last_at > now
    is_paused = view.paused_until is not None and view.paused_until > now
    if is_paused or view.next_at is None or view.next_at <= now:
        return False
    next_at = times.next_after(now)
    return next_at is not None and next_at < view.next_at


def _since(view: ScheduleView, now: datetime) -> datetime:
    """Where a corrected schedule continues: a little way back, because no process has looked since then."""
    if view.paused_until is not None and view.paused_until > now:
        return view.paused_until - _INSTANT
    since = now - min(_LOOK_BACK, view.schedule.within)
    return max(since, view.created_at) if view.created_at <= now else since


def _is_behind(advances: Iterable[Advance], now: datetime) -> bool:
    return any(advance.next_at is not None and advance.next_at <= now for advance in advances)
