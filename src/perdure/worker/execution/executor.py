"""Runs attempts and says what became of them.

The way of an attempt: find the kind → read the arguments → run the handler where its kind belongs → classify what
happened → decide → hand the transition to the acknowledger. Nothing here touches the database, but for handlers that
write together with their acknowledgement (`effects`), or keep how far they have come (`checkpoints`) or what they have
done (`Journal`).
"""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from perdure.clock import Clock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Done, Outcome, Parked, Released, UnknownKind
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.domain.jobs.transition import Transition, of_parent, past_gates, paused
from perdure.events import (
    Emitter,
    HandlerStuck,
    JobDied,
    JobFailed,
    JobRetrying,
    JobStarted,
    JobSucceeded,
    LoopFailed,
    UnknownKindSeen,
    said_of,
)
from perdure.flows.journal import Journal
from perdure.flows.park import parked_in
from perdure.flows.recorder import Recorder
from perdure.flows.step_gates import StepGate, gate_before
from perdure.kinds.kind import Mode, Registry
from perdure.lifecycle.bridges.without_loop import at_once
from perdure.policy.decide import Limits, decide
from perdure.policy.failures import MESSAGE_LIMIT, storable
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import Triage, classify
from perdure.storage.port import Store
from perdure.worker.attempt.checkpoints import StoredCheckpoints
from perdure.worker.attempt.context.context import CURRENT, Context
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.effects import to_the_end
from perdure.worker.attempt.log_lines import AttemptLines, LineKeeper
from perdure.worker.attempt.outcomes import NOTHING, broken, cancelled_from_inside, done, unreadable, with_journal
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.attempt.services import Provisions
from perdure.worker.attempt.spending import StoredSpending
from perdure.worker.claiming.slots import Slots
from perdure.worker.execution.blocking import call_blocking
from perdure.worker.execution.built_in import BUILT_IN
from perdure.worker.execution.forks import Forks
from perdure.worker.execution.threads import ThreadCrew
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.reports import GateReports
from perdure.worker.gates.step_gates import StoredStepGates
from perdure.worker.isolation.pool import ProcessCrew
from perdure.worker.isolation.relay import Relay
from perdure.worker.recording.acknowledger import Acknowledger
from perdure.worker.settings import WorkerSettings

_TIME_TO_DIE: Final = 0.5
_NOT_STARTED: Final = timedelta(seconds=1)  # before one that could not be started is tried again


class Executor:
    """Starts claims, and knows everything that runs."""

    def __init__(
        self,
        *,
        kinds: Registry,
        slots: Slots,
        settings: WorkerSettings,
        clock: Clock,
        emitter: Emitter,
        store: Store,
        acknowledger: Acknowledger,
        on_free: Callable[[], None],
        on_end: Callable[[Claim, Outcome | None], None] = lambda _claim, _outcome: None,
        near: NearLimits | None = None,
        is_ending: Callable[[], bool] = lambda: False,
        reports: GateReports | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._kinds = kinds
        self._slots = slots
        self._grace = settings.grace.total_seconds()
        self._audit = settings.audit
        self._limits = Limits(missing_handler=settings.missing_handler, unknown_kind_for=settings.unknown_kind_for)
        self._clock = clock
        self._emitter = emitter
        checkpoints = StoredCheckpoints(store, emitter, self._claim_lost, settings.outage)
        near = near or NearLimits(emitter, clock)
        spending = StoredSpending(store, kinds, emitter, near, self._claim_lost, settings.outage)
        self._provisions = Provisions(
            effects=store,
            checkpoints=checkpoints,
            spending=spending,
            open_journal=self._open_journal,
            open_lines=self._open_lines,
            open_gate=self._open_gate,
        )
        self._recorder = Recorder(store, emitter, clock, self._claim_lost, settings.outage)
        self._step_gates = StoredStepGates(self._recorder, near, reports)
        self._lines = LineKeeper(store, emitter, settings.keep_lines) if settings.keep_lines else None
        self._acknowledger = acknowledger
        self._acknowledge = acknowledger.add
        self._on_free = on_free
        self._on_end = on_end
        self._is_ending = is_ending
        self._loop = asyncio.get_running_loop()
        self._forks = Forks(self._loop)
        self._random = chance or random.Random()  # noqa: S311 - jitter hides nothing
        self._threads = ThreadCrew(settings.threads, self._run_in_thread, self._ended, self._loop)
        relay = Relay(self._recorder, self._step_gates, settings.keep_lines)
        self._processes = ProcessCrew(settings.isolated, self._grace, checkpoints, spending, relay)
        self.running: set[Running] = set()
        self.finished = 0
        self.released = 0

    @property
    def ended(self) -> int:
        """Attempts that have ended here, whether their jobs were finished, put off or released."""
        return self.finished + self.released

    @property
    def thread_backlog(self) -> int:
        """Attempts that wait for a thread."""
        return self._threads.waiting

    @property
    def process_backlog(self) -> int:
        """Attempts that wait until they may have a process of their own."""
        return self._processes.waiting

    def start(self, claims: Iterable[Claim]) -> None:
        """Run these claims, each where its kind belongs; one that cannot be started goes back at no cost."""
        for claim in claims:
            kind = self._kinds.get(claim.kind) or BUILT_IN.get(claim.kind)
            if kind is None:
                self._refuse(claim)
                continue
            running = Running(claim, kind, StopFlag(), self._clock.monotonic())
            self.running.add(running)
            self._slots.take(claim.queue)
            if self._emitter.follows_attempts:
                running.followed = True
                self._emitter.emit(JobStarted(claim.job_id, claim.kind, claim.queue, claim.attempt, **said_of(claim)))
            try:
                self._begin(running)
            except Exception as error:  # noqa: BLE001 - the other claims are still to be started
                self._take_back(running, error)

    def stop(self, running: Running, stop: Stop, why: str | None = None) -> None:
        """Ask one attempt to stop; if it has not after the grace, its attempt is given up and recorded without it.

        `why` is what whoever wants it called off has said.
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

    def find(self, job_id: str, token: int) -> Running | None:
        """The attempt that runs under this claim."""
        for running in self.running:
            if running.claim.token == token and running.claim.job_id == job_id:
                return running
        return None

    def announce_closing(self) -> None:
        """Tell every handler that looks that the worker is stopping; what has not reached its handler goes back."""
        self._processes.announce_closing()
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
        """Let go of threads, and end all processes."""
        self._threads.close()
        await self._processes.close()
        await self._step_gates.close()
        await self._recorder.close()
        if self._lines is not None:
            await self._lines.close()

    def _begin(self, running: Running) -> None:
        kind = running.kind
        if kind.mode is Mode.THREAD:
            self._threads.submit(running)
            return
        run = self._run_task if kind.mode is Mode.TASK else self._run_in_process
        task = self._loop.create_task(run(running))
        running.task = task
        running.interrupt = task.cancel  # also what keeps the task from being collected
        if kind.mode is Mode.TASK and (timeout := running.timeout) is not None:
            self._limit(running, timeout)

    def _limit(self, running: Running, timeout: timedelta) -> None:
        if running in self.running:
            running.timer = self._loop.call_later(timeout.total_seconds(), self.stop, running, Stop.TIMED_OUT)

    def _refuse(self, claim: Claim) -> None:
        self._emitter.emit(UnknownKindSeen(claim.job_id, claim.kind))
        move = decide(claim, UnknownKind(), None, claim.claimed_at, self._random, self._limits)
        self._acknowledge(move)
        if move.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(move))

    def _take_back(self, running: Running, error: Exception) -> None:
        running.stop = Stop.LOST  # a thread that finds it leaves it alone
        running.given_up = True
        self.running.discard(running)
        self._slots.release(running.claim.queue)
        why = f"could not be started: {type(error).__name__}: {error}"
        self._emitter.emit(LoopFailed("executor", f"job {running.claim.job_id} {why}"))
        back = paused(running.claim, Reason.RELEASED, _NOT_STARTED, storable(why, MESSAGE_LIMIT))
        self._acknowledge(past_gates(back) if running.kind.charges_starts else back)

    async def _run_task(self, running: Running) -> None:
        self._forks.end_child()
        running.begun = True
        claim, kind = running.claim, running.kind
        context = running.context = Context(
            *(claim, running.flag, self._provisions), started=running.started, triage=kind.triage
        )
        CURRENT.set(context)
        pressed: KeyboardInterrupt | None = None
        outcome: Outcome | None
        try:
            args, kwargs = kind.signature.decode(claim.args)
        except Exception as error:  # noqa: BLE001 - the types of a job's arguments are somebody else's code
            self._ended(running, unreadable(error))
            return
        try:
            if kind.hooks.middleware:
                result = await kind.hooks.call(kind.handler, context, kind.with_context(context, args), kwargs)
            elif kind.signature.takes_context:
                result = await kind.handler(context, *args, **kwargs)
            else:
                result = await kind.handler(*args, **kwargs)
            outcome = NOTHING if result is None else done(result)
        except asyncio.CancelledError as error:
            outcome = self._when_cancelled(running, error)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            outcome = parked_in(error) or classify(error, kind.triage, now=self._clock.now())
            if running.followed:
                running.exception = error
            pressed = error if isinstance(error, KeyboardInterrupt) and _may_be_typed() else None
        self._forks.end_child()
        if context.opened is not None:
            outcome = with_journal(context.opened, outcome)
        if context.opened is not None or context.effects is not None or context.lines is not None:
            outcome = await to_the_end(self._settle(running, context, outcome))
        self._ended(running, outcome)
        if pressed is not None:
            raise pressed

    async def _run_in_process(self, running: Running) -> None:
        running.begun = True
        outcome: Outcome | None
        try:
            outcome = await self._processes.run(running)
        except asyncio.CancelledError as error:
            outcome = self._when_cancelled(running, error)
        except Exception as error:  # noqa: BLE001 - the attempt must end
            outcome = broken(error)
        self._ended(running, outcome)

    def _run_in_thread(self, running: Running) -> Outcome | None:
        running.thread = threading.get_ident()
        running.begun = True  # before the look: `stop` sets the one and looks at the other, so that one of us sees it
        if running.stop is not None:
            return running.outcome_when_stopped()
        if (timeout := running.timeout) is not None:  # from now on: waiting for a thread is not the handler's time
            self._loop.call_soon_threadsafe(self._limit, running, timeout)
        context = running.context = Context(
            *(running.claim, running.flag, self._provisions),
            started=running.started,
            triage=running.kind.triage,
            blocking=True,
        )
        outcome: Outcome | None
        try:
            outcome = call_blocking(running, context, self._clock, self._run_on_loop)
            self._forks.end_child()
            if context.opened is not None:
                outcome = with_journal(context.opened, outcome)
            outcome = at_once(self._settle(running, context, outcome))
        except BaseException:  # interrupted
            if context.effects is not None:
                at_once(context.effects.undo())
            raise
        return outcome

    def _run_on_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the worker's loop, and block the thread of a sync handler until it is done."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except RuntimeError:
            coroutine.close()  # if the loop is closed, it was never begun; else it is over
            raise

    def _when_cancelled(self, running: Running, error: BaseException) -> Outcome | None:
        if running.stop is None and self._is_ending():  # whoever ends the program cancels all its tasks
            running.stop = Stop.CLOSING
        if running.stop is None:
            return cancelled_from_inside(error)
        return running.outcome_when_stopped()

    def _ended(self, running: Running, outcome: Outcome | None) -> None:
        self.running.discard(running)
        if running.timer is not None:
            running.timer.cancel()
        if running.given_up:
            return
        self._slots.release(running.claim.queue)
        self._record(running, outcome)
        self._on_free()

    def _give_up(self, running: Running) -> None:
        if running not in self.running or running.given_up:
            return
        if running.force is not None:  # its end is then recorded as any other
            running.force()
            running.force = None
            running.dying = True
            self._loop.call_later(_TIME_TO_DIE, self._give_up, running)
            return
        running.given_up = True
        self._slots.release(running.claim.queue)
        because = running.stop.value if running.stop else ""
        self._emitter.emit(HandlerStuck(running.claim.job_id, running.kind.name, because))
        self._record(running, running.outcome_when_stopped())
        if running.context is not None and running.context.effects is not None:
            running.context.effects.abandon()
        self._on_free()
        self._threads.give_up(running)

    def _record(self, running: Running, outcome: Outcome | None) -> None:
        if running.context is not None and running.context.effects is not None:
            answer = running.context.effects.answer
            if answer is not None:
                self.finished += 1
                self._acknowledger.note(answer, running.claim.job_id)
                self._on_end(running.claim, NOTHING)
                if self._emitter.follows_attempts and not answer.stale:
                    self._follow_success(running)
        if isinstance(outcome, Parked) and running.stop not in (None, Stop.CLOSING):
            outcome = running.outcome_when_stopped()  # it was told to stop, and would have waited
        if outcome is None or (running.stop is Stop.LOST and not isinstance(outcome, Done)):
            self._on_end(running.claim, None)  # nobody asks how an attempt failed that had lost its claim
            return
        transition = self._decide(running, outcome)
        if isinstance(outcome, Released):
            self.released += 1
        else:
            self.finished += 1
        self._acknowledge(transition)
        self._on_end(running.claim, outcome)
        if self._emitter.follows_attempts:
            self._follow(running, transition)
        if transition.failure is not None:
            self._tell(running, transition)

    def _follow(self, running: Running, move: Transition) -> None:
        """Emit how an attempt has ended, for those who follow every one."""
        exception, running.exception = running.exception, None  # else the two would hold each other
        if move.to is JobState.SUCCEEDED:
            self._follow_success(running)
        elif move.failure is not None:
            claim, seconds = running.claim, self._seconds(running)
            will_retry, error = move.to is not JobState.DEAD, str(move.failure)
            self._emitter.emit(
                JobFailed(
                    *(claim.job_id, claim.kind, claim.queue, claim.attempt, seconds, will_retry, error),
                    exception=exception,
                    **said_of(claim),
                )
            )

    def _follow_success(self, running: Running) -> None:
        claim = running.claim
        facts = claim.job_id, claim.kind, claim.queue, claim.attempt, self._seconds(running)
        self._emitter.emit(JobSucceeded(*facts, **said_of(claim)))

    def _seconds(self, running: Running) -> float:
        return round(self._clock.monotonic() - running.started, 6)

    def _open_journal(
        self, claim: Claim, flag: StopFlag, *, started: float, triage: Triage | None, blocking: bool
    ) -> Journal:
        return Journal(
            *(claim, self._recorder, flag), started=started, blocking=blocking, triage=triage, random=self._random
        )

    def _open_gate(self, claim: Claim, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        return gate_before(self._step_gates, self._kinds[claim.kind], claim, key, gates, breaker)

    async def _settle(self, running: Running, context: Context, outcome: Outcome | None) -> Outcome | None:
        """End the handler's transaction, if it has one, and write what it has said, while the claim is held."""
        if context.effects is not None:
            outcome = await context.effects.settle(outcome, lambda done: self._decide(running, done), self._audit)
            if context.effects.answer is not None:
                return outcome
        if context.opened is not None and context.opened.is_heard:
            await context.opened.reach(self._recorder.show_now())
        if context.lines is not None:
            await context.lines.settle()
        return outcome

    def _open_lines(self, claim: Claim, *, started: float, blocking: bool) -> AttemptLines | None:
        if self._lines is None:
            return None
        return AttemptLines(claim, self._lines, partial(self._now, claim, started), blocking=blocking)

    def _claim_lost(self, claim: Claim) -> None:
        running = self.find(claim.job_id, claim.token)
        if running is not None:
            self.stop(running, Stop.LOST)

    def _decide(self, running: Running, outcome: Outcome) -> Transition:
        now = self._now(running.claim, running.started)
        move = decide(running.claim, outcome, running.retry, now, self._random, self._limits)
        journal = None if running.context is None else running.context.opened
        if running.spawned or (journal is not None and journal.spawned):
            move = of_parent(move)
        if running.kind.gates and move.failure is None and move.to not in FINAL and running.kind.charges_starts:
            move = past_gates(move)
        return move

    def _now(self, claim: Claim, started: float) -> datetime:
        # The database's clock, as of the claim, plus the time measured here: this machine's date does not matter.
        return claim.claimed_at + timedelta(seconds=self._clock.monotonic() - started)

    def _tell(self, running: Running, transition: Transition) -> None:
        if transition.to is JobState.DEAD:
            self._emitter.emit(JobDied.by(transition))
        else:
            claim, counts = transition.claim, (transition.failures, transition.limit or None)
            wait = transition.wait.total_seconds() if transition.wait else 0.0
            failure = transition.failure
            traceback = None if failure is None else failure.traceback
            facts = claim.job_id, claim.kind, claim.attempt, *counts, wait, str(failure), traceback
            next_at = self._now(claim, running.started) + timedelta(seconds=wait)
            self._emitter.emit(JobRetrying(*facts, next_at, **said_of(claim)))


def _may_be_typed() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt here; where somebody listens to SIGINT, a handler raised it itself."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
