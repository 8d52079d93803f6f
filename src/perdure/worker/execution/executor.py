"""Starts and stops attempts, and keeps the list of running ones.

An attempt passes five stages, the first three in `handler_runs`, the others in `attempt_ends`:

    decode    read the arguments with the signature of the kind
    run       call the handler: as a task, in a thread, or in a process of its own
    outcome   what it returned or raised, or why it was stopped
    decide    outcome and policy become a transition (`decider`, `policy.decide`)
    record    the transition goes to the acknowledger

Nothing here touches the database, except for handlers that write together with their acknowledgement
(`closing_writes`), or use the services of their context (`attempt.stored_services`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Outcome
from perdure.events import HandlerStuck, JobStarted, LoopFailed, said_of
from perdure.kinds.kind import Mode
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.claiming.slots import Slots
from perdure.worker.execution.attempt_ends import AttemptEnds
from perdure.worker.execution.built_in import BUILT_IN
from perdure.worker.execution.handler_runs import HandlerRuns
from perdure.worker.execution.threads import MakeThreads, ThreadCrew
from perdure.worker.surroundings import Surroundings

_KILLED_WITHIN_SECONDS: Final = 0.5
_RETRY_START_AFTER: Final = timedelta(seconds=1)
_TASK: Final = Mode.TASK  # members of an enum are slow to look up, and each attempt needs this one


class Executor:
    """Starts claims, and stops attempts. `on_free`: an attempt has ended, and its slot is free."""

    def __init__(
        self,
        around: Surroundings,
        slots: Slots,
        *,
        runs: HandlerRuns,
        ends: AttemptEnds,
        on_free: Callable[[], None],
        make_threads: MakeThreads = ThreadCrew,
    ) -> None:
        self._kinds = around.kinds
        self._clock = around.clock
        self._emitter = around.emitter
        self._hooks = around.hooks
        self._grace = around.settings.grace.total_seconds()
        self._slots = slots
        self._runs = runs
        self._ends = ends
        self._on_free = on_free
        self._loop = asyncio.get_running_loop()
        self._threads = make_threads(around.settings.threads, self._run_in_thread, self._ended, self._loop)
        self.running: set[Running] = set()

    @property
    def finished(self) -> int:
        """Attempts that have ended here; those whose jobs were released to their queue do not count."""
        return self._ends.finished

    @property
    def released(self) -> int:
        """Attempts whose jobs were released to their queue."""
        return self._ends.released

    @property
    def ended(self) -> int:
        """Attempts that have ended here, whether their jobs were finished, put off or released."""
        return self._ends.finished + self._ends.released

    @property
    def thread_backlog(self) -> int:
        """Attempts that wait for a thread."""
        return self._threads.waiting

    @property
    def process_backlog(self) -> int:
        """Attempts that wait for a free process."""
        return self._runs.process_backlog

    def start(self, claims: Iterable[Claim]) -> None:
        """Start these claims, each in the mode of its kind; one that cannot be started goes back at no cost."""
        for claim in claims:
            kind = self._kinds.get(claim.kind) or BUILT_IN.get(claim.kind)
            if kind is None:
                self._ends.record_unknown(claim)
                continue
            running = Running(claim, kind, StopFlag(), self._clock.monotonic())
            self.running.add(running)
            self._slots.take(claim.queue)
            if (tracer := self._hooks.tracer) is not None:
                running.mark = tracer.started(claim)
            if self._emitter.follows_attempts:
                running.followed = True
                self._emit_started(running)
            try:
                self._begin(running)
            except Exception as error:  # noqa: BLE001 - the other claims are still to be started
                self._take_back(running, error)

    def stop(self, running: Running, stop: Stop, why: str | None = None) -> None:
        """Ask one attempt to stop; if it has not stopped after the grace, it is abandoned and recorded.

        `why` is the reason that an operator gave for a cancellation.
        """
        if running.stop is not None or running not in self.running:
            return
        running.stop = stop
        running.why = why
        running.flag.stop(stop.value)
        if running.interrupt is not None:
            running.interrupt()
        if not running.begun:  # its task, cancelled now, will never begin; a thread that finds it leaves it alone
            self._ended(running, running.outcome_when_stopped())
            running.given_up = True
        else:
            self._loop.call_later(self._grace, self._give_up, running)

    def stop_lost(self, claim: Claim) -> None:
        """Stop the attempt under a claim that turned out to be lost."""
        running = self.find(claim.job_id, claim.token)
        if running is not None:
            self.stop(running, Stop.LOST)

    def find(self, job_id: str, token: int) -> Running | None:
        """The attempt that runs under this claim."""
        for running in self.running:
            if running.claim.token == token and running.claim.job_id == job_id:
                return running
        return None

    def announce_closing(self) -> None:
        """Tell every handler that the worker is stopping; attempts that have not reached their handler go back."""
        self._runs.announce_closing()
        for running in list(self.running):
            running.flag.close()
            waits_for_process = running.kind.mode is Mode.PROCESS and running.force is None
            if waits_for_process or not running.begun:
                self.stop(running, Stop.CLOSING)

    def give_up_rest(self) -> None:
        """Give up every attempt that still runs: at once, or as soon as its process is killed."""
        for running in list(self.running):
            if not running.dying:
                self._give_up(running)

    async def close(self) -> None:
        """Release the threads, end all processes, and close the services of attempts."""
        self._threads.close()
        await self._runs.close()

    def _begin(self, running: Running) -> None:
        mode = running.kind.mode
        if mode is _TASK:
            task = self._loop.create_task(self._runs.in_task(running, self._ended))
            if (timeout := running.timeout) is not None:
                self._limit(running, timeout)
        elif mode is Mode.PROCESS:
            task = self._loop.create_task(self._runs.in_process(running, self._ended))
        else:
            self._threads.submit(running)
            return
        running.task = task
        running.interrupt = task.cancel  # also what keeps the task from being collected

    def _emit_started(self, running: Running) -> None:
        claim, tracer = running.claim, self._hooks.tracer
        token = None if tracer is None else tracer.enter(running.mark)
        self._emitter.emit(JobStarted(claim.job_id, claim.kind, claim.queue, claim.attempt, **said_of(claim)))
        if tracer is not None:
            tracer.leave(token)

    def _run_in_thread(self, running: Running) -> Outcome | None:
        return self._runs.in_thread(running, self._limit)

    def _limit(self, running: Running, timeout: timedelta) -> None:
        if running in self.running:
            running.timer = self._loop.call_later(timeout.total_seconds(), self.stop, running, Stop.TIMED_OUT)

    def _take_back(self, running: Running, error: Exception) -> None:
        running.stop = Stop.LOST  # a thread that finds it leaves it alone
        running.given_up = True
        self.running.discard(running)
        self._slots.release(running.claim.queue)
        why = f"could not be started: {type(error).__name__}: {error}"
        self._emitter.emit(LoopFailed("executor", f"job {running.claim.job_id} {why}"))
        self._ends.record_not_started(running, _RETRY_START_AFTER, why)

    def _ended(self, running: Running, outcome: Outcome | None) -> None:
        self.running.discard(running)
        if running.timer is not None:
            running.timer.cancel()
        if running.given_up:
            return
        self._slots.release(running.claim.queue)
        self._ends.record(running, outcome)
        self._on_free()

    def _give_up(self, running: Running) -> None:
        if running not in self.running or running.given_up:
            return
        if running.force is not None:  # its end is then recorded as any other
            running.force()
            running.force = None
            running.dying = True
            self._loop.call_later(_KILLED_WITHIN_SECONDS, self._give_up, running)
            return
        running.given_up = True
        self._slots.release(running.claim.queue)
        because = running.stop.value if running.stop else ""
        self._emitter.emit(HandlerStuck(running.claim.job_id, running.kind.name, because))
        self._ends.record(running, running.outcome_when_stopped())
        if running.context is not None and running.context.effects is not None:
            running.context.effects.abandon()
        self._on_free()
        self._threads.give_up(running)
