"""What one process has counted: its workers, its loops, the jobs that it stored, the events that it emitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from perdure.clock import Clock, SystemClock
from perdure.enqueue.counts import EnqueueCounts
from perdure.events import (
    Emitter,
    Event,
    FamilySpawned,
    JobsRescued,
    ScheduleFired,
    ScheduleMissed,
    ScheduleOverlapped,
)
from perdure.lifecycle.loops.loop import Loop
from perdure.signals.metrics import catalogue as c
from perdure.signals.metrics.attempts import AttemptFamilies
from perdure.signals.metrics.families import Family, Numbers, Times
from perdure.signals.metrics.labels import Labels
from perdure.version import __version__
from perdure.worker.recording.totals import LoopTally, WorkerTally
from perdure.worker.worker import Worker

_OUTCOMES: Final = ("fired", "missed", "overlapped")


class ProcessMetrics:
    """Listens to the events of a process from now on, and reads everything else when asked.

    `workers` and `loops` are read when asked, so they may be filled later. All of it belongs to one event loop.
    """

    def __init__(
        self,
        events: Emitter,
        labels: Labels,
        *,
        enqueued: EnqueueCounts | None = None,
        workers: Collection[Worker] = (),
        loops: Callable[[], Iterable[Loop[Any]]] = tuple,
        clock: Clock | None = None,
    ) -> None:
        self._labels = labels
        self._clock = clock or SystemClock()
        self._enqueued = enqueued
        self._workers = workers
        self._loops = loops
        self._events: Counter[str] = Counter()
        self._spawned = EnqueueCounts()  # by handlers and schedules: the app does not see these
        self._rescued = Numbers(c.RESCUED)
        for outcome in ("ready", "dead"):  # a counter that begins at 0 shows its first step as an increase
            self._rescued.add(0, outcome)
        self._schedules = Numbers(c.SCHEDULES)
        self._last_missed = Numbers(c.LAST_MISSED, largest=True)
        self._lateness = Times(c.LATENESS)
        self.close = events.subscribe(self._note)
        """Stop listening."""

    def families(self) -> list[Family]:
        """All metrics of this process."""
        tallies = [worker.tally() for worker in self._workers]
        build = Numbers(c.BUILD)
        build.add(1, __version__)
        events = Numbers(c.EVENTS)
        for name, number in self._events.items():
            events.add(number, name)
        stale = Numbers(c.STALE)
        for tally in tallies:
            stale.add(tally.stale)
        return [
            build,
            self._stored(),
            *self._attempts(tallies),
            stale,
            self._rescued,
            self._schedules,
            self._last_missed,
            self._lateness,
            *self._ticks(tallies),
            events,
            *self._in_hand(tallies),
        ]

    def _stored(self) -> Numbers:
        stored = Numbers(c.ENQUEUED)
        for pair in self._labels.declared:
            stored.add(0, *pair)
        for counts in (self._enqueued, self._spawned):
            for (queue, kind), jobs in list(counts.jobs.items()) if counts is not None else ():
                stored.add(jobs, *self._labels.pair(queue, kind))
        return stored

    def _attempts(self, tallies: Iterable[WorkerTally]) -> tuple[Numbers | Times, ...]:
        found = AttemptFamilies(attempts=c.ATTEMPTS, retries=c.RETRIES, deaths=c.DEATHS, wait=c.WAIT, run=c.RUN)
        for pair in self._labels.declared if self._workers else ():
            found.add(pair, {})
        holds = Numbers(c.HOLDS)
        for totals in [tally.attempts for tally in tallies if tally.attempts is not None]:
            for (queue, kind), total in totals.pairs.items():
                pair = self._labels.pair(queue, kind)
                found.add(pair, total.endings)
                found.add_times(pair, (total.waits, total.waited), (total.runs, total.ran))
            for (queue, kind, reason), jobs in totals.holds.items():
                holds.add(jobs, *self._labels.pair(queue, kind), reason)
        return *found.parts, holds

    def _ticks(self, tallies: Iterable[WorkerTally]) -> tuple[Numbers, ...]:
        ticks, skips, failures = Numbers(c.TICKS), Numbers(c.SKIPS), Numbers(c.LOOP_FAILURES)
        own = [LoopTally(loop.name, loop.ticks, loop.skipped, loop.failed) for loop in self._loops()]
        for loop in [*own, *(loop for tally in tallies for loop in tally.loops)]:
            name = self._labels.loop(loop.name)
            ticks.add(loop.ticks, name)
            skips.add(loop.skipped, name)
            failures.add(loop.failed, name)
        return ticks, skips, failures

    @staticmethod
    def _in_hand(tallies: Iterable[WorkerTally]) -> tuple[Numbers, ...]:
        running, slots, backlog = Numbers(c.RUNNING), Numbers(c.SLOTS), Numbers(c.BACKLOG)
        for tally in tallies:
            running.add(tally.running)
            slots.add(tally.concurrency)
            backlog.add(tally.backlog)
        return running, slots, backlog

    def _note(self, event: Event) -> None:
        self._events[type(event).__name__] += 1
        if isinstance(event, JobsRescued):
            self._rescued.add(event.ready, "ready")
            self._rescued.add(event.dead, "dead")
        elif isinstance(event, ScheduleFired):
            self._handled(event.schedule, "fired")
            self._lateness.observe(event.late, self._labels.schedule(event.schedule))
            self._spawned.add(event.queue, event.kind)
        elif isinstance(event, ScheduleMissed):
            self._handled(event.schedule, "missed", event.missed)
            self._last_missed.add(self._clock.now().timestamp(), self._labels.schedule(event.schedule))
        elif isinstance(event, ScheduleOverlapped):
            self._handled(event.schedule, "overlapped")
        elif isinstance(event, FamilySpawned):
            for queue, kind, jobs in event.stored:
                self._spawned.add(queue, kind, jobs)

    def _handled(self, schedule: str, outcome: str, times: int = 1) -> None:
        label = self._labels.schedule(schedule)
        for each in _OUTCOMES:
            self._schedules.add(times if each == outcome else 0, label, each)
