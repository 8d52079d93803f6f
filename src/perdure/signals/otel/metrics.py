"""Metrics through the API of OpenTelemetry, read at each export from what workers and the app count anyway.

A reader asks from a thread of its own, but the counts belong to a worker's event loop. So the sums are made there, and
a loop that does not answer in time is left out of that export.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, Final

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter

from perdure.domain.operate.statistics import Ending
from perdure.enqueue.counts import EnqueueCounts
from perdure.events import Emitter
from perdure.signals.metrics.labels import Labels
from perdure.signals.metrics.settings import MetricsSettings
from perdure.signals.otel import names
from perdure.signals.otel.event_counts import EventCounts
from perdure.version import __version__
from perdure.worker.recording.totals import AttemptTotals, LoopTally, WorkerTally

_ANSWER_TIMEOUT_SECONDS: Final = 1.0

ENQUEUED: Final = "perdure.enqueued"
ATTEMPTS: Final = "perdure.attempts"
HOLDS: Final = "perdure.holds"
WAIT_TIME: Final = "perdure.wait.time"
RUN_TIME: Final = "perdure.run.time"
RUNNING: Final = "perdure.running"
SLOTS: Final = "perdure.slots"
BACKLOG: Final = "perdure.acknowledgements.waiting"
STALE: Final = "perdure.acknowledgements.stale"
RESCUED: Final = "perdure.rescued"
SCHEDULES: Final = "perdure.schedule.times"
LATENESS: Final = "perdure.schedule.lateness"
TICKS: Final = "perdure.loop.ticks"
SKIPS: Final = "perdure.loop.skips"
LOOP_FAILURES: Final = "perdure.loop.failures"

_OF_LOOPS: Final = (
    (TICKS, "ticks", "Ticks of a periodic loop."),
    (SKIPS, "skipped", "Ticks that were skipped because the previous one still ran."),
    (LOOP_FAILURES, "failed", "Ticks that failed or exceeded their limit."),
)


class OtelMetrics:
    """The instruments of one app. `on_worker` is called with each of its workers."""

    def __init__(self, provider: MeterProvider | None, events: Emitter, enqueued: EnqueueCounts) -> None:
        self._enqueued = enqueued
        self._labels = Labels(MetricsSettings())
        self._workers: list[tuple[Any, asyncio.AbstractEventLoop, int]] = []
        self._is_closed = False
        meter = get_meter(names.SCOPE, __version__, provider)
        lateness = meter.create_histogram(LATENESS, "s", "Time from a nominal time of a schedule to its job.")
        self._noted = EventCounts(events, lambda name, late: lateness.record(max(late, 0.0), self._schedule(name)))
        self._declare(meter)

    def on_worker(self, worker: Any) -> None:
        """Export the counts of this worker, which runs on the current event loop."""
        self._workers.append((worker, asyncio.get_running_loop(), threading.get_ident()))

    def close(self) -> None:
        """Observe nothing from now on: instruments cannot be removed."""
        self._is_closed = True
        self._noted.close()
        self._workers.clear()

    def _declare(self, meter: Meter) -> None:
        counter, gauge = meter.create_observable_counter, meter.create_observable_up_down_counter
        counter(ENQUEUED, [self._asked(self._stored)], "{job}", "Jobs that this process has stored.")
        counter(ATTEMPTS, [self._asked(self._attempts)], "{attempt}", "Attempts, by how they ended.")
        counter(HOLDS, [self._asked(self._holds)], "{job}", "Jobs put off at no cost, by reason.")
        counter(WAIT_TIME, [self._asked(self._waited)], "s", "Time that fresh jobs have waited for a worker.")
        counter(RUN_TIME, [self._asked(self._ran)], "s", "Time that attempts have run.")
        counter(STALE, [self._asked(self._stale)], "{acknowledgement}", "Acknowledgements that changed nothing.")
        counter(RESCUED, [self._asked(self._rescued)], "{job}", "Jobs taken from dead workers.")
        counter(SCHEDULES, [self._asked(self._schedules)], "{time}", "Nominal times of schedules that were handled.")
        for name, field, text in _OF_LOOPS:
            counter(name, [self._asked(partial(self._loops, attrgetter(field)))], "{tick}", text)
        gauge(RUNNING, [self._asked(self._running)], "{attempt}", "Attempts that run.")
        gauge(SLOTS, [self._asked(self._slots)], "{attempt}", "Attempts that may run at once.")
        gauge(BACKLOG, [self._asked(self._backlog)], "{attempt}", "Attempts that have ended and are not recorded yet.")

    def _asked(self, observe: Callable[[], Iterable[Observation]]) -> Callable[[CallbackOptions], list[Observation]]:
        return lambda _options: [] if self._is_closed else list(observe())

    def _stored(self) -> Iterable[Observation]:
        for counts in (self._enqueued, self._noted.spawned):
            for (queue, kind), jobs in list(counts.jobs.items()):
                yield Observation(jobs, self._pair(queue, kind))

    def _attempts(self) -> Iterable[Observation]:
        for (queue, kind), total in self._pairs():
            for ending, jobs in total.endings.items():
                if ending is not Ending.HELD:
                    yield Observation(jobs, self._pair(queue, kind) | {names.ATTEMPT_OUTCOME: ending.value})

    def _waited(self) -> Iterable[Observation]:
        return [Observation(max(total.waited, 0.0), self._pair(*pair)) for pair, total in self._pairs()]

    def _ran(self) -> Iterable[Observation]:
        return [Observation(max(total.ran, 0.0), self._pair(*pair)) for pair, total in self._pairs()]

    def _holds(self) -> Iterable[Observation]:
        for totals in self._totals():
            for (queue, kind, reason), jobs in list(totals.holds.items()):
                yield Observation(jobs, self._pair(queue, kind) | {names.ATTEMPT_REASON: reason.value})

    def _stale(self) -> Iterable[Observation]:
        return [Observation(tally.stale, {names.WORKER: tally.name}) for tally in self._tallies()]

    def _rescued(self) -> Iterable[Observation]:
        return [Observation(jobs, {names.RESCUE_OUTCOME: to}) for to, jobs in list(self._noted.rescued.items())]

    def _schedules(self) -> Iterable[Observation]:
        for (name, outcome), times in list(self._noted.schedules.items()):
            yield Observation(times, self._schedule(name) | {names.SCHEDULE_OUTCOME: outcome})

    def _loops(self, number: Callable[[LoopTally], int]) -> Iterable[Observation]:
        for tally in self._tallies():
            for loop in tally.loops:
                yield Observation(number(loop), {names.LOOP: self._labels.loop(loop.name), names.WORKER: tally.name})

    def _running(self) -> Iterable[Observation]:
        return [Observation(tally.running, {names.WORKER: tally.name}) for tally in self._tallies()]

    def _slots(self) -> Iterable[Observation]:
        return [Observation(tally.concurrency, {names.WORKER: tally.name}) for tally in self._tallies()]

    def _backlog(self) -> Iterable[Observation]:
        return [Observation(tally.backlog, {names.WORKER: tally.name}) for tally in self._tallies()]

    def _pair(self, queue: str, kind: str) -> dict[str, Any]:
        labels = self._labels.pair(queue, kind)
        return {names.JOB_QUEUE: labels[0], names.JOB_KIND: labels[1]}

    def _schedule(self, name: str) -> dict[str, Any]:
        return {names.SCHEDULE: self._labels.schedule(name)}

    def _pairs(self) -> Iterable[tuple[tuple[str, str], Any]]:
        return [pair for totals in self._totals() for pair in list(totals.pairs.items())]

    def _totals(self) -> list[AttemptTotals]:
        return [tally.attempts for tally in self._tallies() if tally.attempts is not None]

    def _tallies(self) -> list[WorkerTally]:
        found = (_tally_of(worker, loop, thread) for worker, loop, thread in self._workers)
        return [tally for tally in found if tally is not None]


def _tally_of(worker: Any, loop: asyncio.AbstractEventLoop, thread: int) -> WorkerTally | None:
    """The tally of a worker, made on its event loop; None: the loop does not answer in time."""
    if threading.get_ident() == thread or loop.is_closed():
        tally: WorkerTally = worker.tally()
        return tally
    answer: Future[WorkerTally] = Future()

    def make() -> None:
        if answer.set_running_or_notify_cancel():
            answer.set_result(worker.tally())

    with suppress(RuntimeError, TimeoutError):  # it has just closed, or is blocked
        loop.call_soon_threadsafe(make)
        return answer.result(_ANSWER_TIMEOUT_SECONDS)
    return None
