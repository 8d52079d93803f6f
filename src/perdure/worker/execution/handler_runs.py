"""The first three stages of an attempt: decode the arguments, run the handler, turn what happened into an outcome.

There is one function for each place in which a handler runs: as a task on the event loop, in a thread, or in an
isolated process (whose other side is `isolation.child`).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from perdure.clock import Clock
from perdure.domain.jobs.outcome import Outcome
from perdure.flows.park import parked_in
from perdure.hooks.hooks import Hooks
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.policy.retries.triage import classify
from perdure.worker.attempt.context.context import CURRENT, Context
from perdure.worker.attempt.effects import to_the_end
from perdure.worker.attempt.outcomes import NOTHING, broken, cancelled_from_inside, done, unreadable, with_journal
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.attempt.stored_services import StoredServices
from perdure.worker.execution.blocking import call_blocking
from perdure.worker.execution.closing_writes import ClosingWrites
from perdure.worker.execution.forks import Forks
from perdure.worker.isolation.pool import ProcessCrew


class HandlerRuns:
    """Runs handlers. `is_ending`: the program ends, and cancels all its tasks."""

    def __init__(
        self,
        *,
        services: StoredServices,
        writes: ClosingWrites,
        processes: ProcessCrew,
        clock: Clock,
        hooks: Hooks,
        is_ending: Callable[[], bool],
    ) -> None:
        self._stored_services = services
        self._services = services.services
        self._writes = writes
        self._processes = processes
        self._clock = clock
        self._hooks = hooks
        self._is_ending = is_ending
        self._loop = asyncio.get_running_loop()
        self._forks = Forks(self._loop)

    @property
    def process_backlog(self) -> int:
        """Attempts that wait for a free process."""
        return self._processes.waiting

    def announce_closing(self) -> None:
        """Tell every process that the worker is stopping."""
        self._processes.announce_closing()

    async def close(self) -> None:
        """End all processes, and close the services."""
        await self._processes.close()
        await self._stored_services.close()

    async def in_task(self, running: Running, ended: Callable[[Running, Outcome | None], None]) -> None:
        """Run an async handler here. `ended` gets the outcome before a Ctrl-C in the handler is raised again."""
        self._forks.end_child()
        running.begun = True
        claim, kind = running.claim, running.kind
        context = running.context = Context(
            claim, running.flag, self._services, started=running.started, triage=kind.triage
        )
        CURRENT.set(context)
        if (mark := running.mark) is not None and (tracer := self._hooks.tracer) is not None:
            tracer.enter(mark)  # for the rest of this task
        pressed: KeyboardInterrupt | None = None
        outcome: Outcome | None
        try:
            args, kwargs = kind.signature.decode(claim.args)
        except Exception as error:  # noqa: BLE001 - the types of a job's arguments are the app's own code
            ended(running, unreadable(error))
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
        except BaseException as error:  # noqa: BLE001 - any error of a handler is its outcome
            outcome = parked_in(error) or classify(error, kind.triage, now=self._clock.now())
            if running.followed:
                running.exception = error
            pressed = error if isinstance(error, KeyboardInterrupt) and _may_be_typed() else None
        self._forks.end_child()
        if context.opened is not None or context.effects is not None or context.lines is not None:
            outcome = outcome if context.opened is None else with_journal(context.opened, outcome)
            outcome = await to_the_end(self._writes.write(running, context, outcome))
        ended(running, outcome)
        if pressed is not None:
            raise pressed

    async def in_process(self, running: Running, ended: Callable[[Running, Outcome | None], None]) -> None:
        """Run a handler in an isolated process."""
        running.begun = True
        outcome: Outcome | None
        try:
            outcome = await self._processes.run(running)
        except asyncio.CancelledError as error:
            outcome = self._when_cancelled(running, error)
        except Exception as error:  # noqa: BLE001 - the attempt must end
            outcome = broken(error)
        ended(running, outcome)

    def in_thread(self, running: Running, limit: Callable[[Running, timedelta], None]) -> Outcome | None:
        """Run a sync handler in the calling thread. `limit` sets its timeout, on the event loop."""
        running.thread = threading.get_ident()
        running.begun = True  # before the check: `stop` sets the other flag and checks this one
        if running.stop is not None:
            return running.outcome_when_stopped()
        if (timeout := running.timeout) is not None:  # from now on: the wait for a thread does not count
            self._loop.call_soon_threadsafe(limit, running, timeout)
        context = running.context = Context(
            running.claim,
            running.flag,
            self._services,
            started=running.started,
            triage=running.kind.triage,
            blocking=True,
        )
        tracer = self._hooks.tracer
        token = None if tracer is None else tracer.enter(running.mark)
        outcome: Outcome | None
        try:
            outcome = call_blocking(running, context, self._clock, self._run_on_loop)
            self._forks.end_child()
            if context.opened is not None:
                outcome = with_journal(context.opened, outcome)
            outcome = run_without_loop(self._writes.write(running, context, outcome))
        except BaseException:  # interrupted
            if context.effects is not None:
                run_without_loop(context.effects.undo())
            raise
        finally:
            if tracer is not None:
                tracer.leave(token)
        return outcome

    def _run_on_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the worker's loop, and block the thread of a sync handler until it is done."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except RuntimeError:
            coroutine.close()  # if the loop is closed, it was never begun; else it is over
            raise

    def _when_cancelled(self, running: Running, error: BaseException) -> Outcome | None:
        if running.stop is None and self._is_ending():  # a program that ends cancels all its tasks
            running.stop = Stop.CLOSING
        if running.stop is None:
            return cancelled_from_inside(error)
        return running.outcome_when_stopped()


def _may_be_typed() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt here; if SIGINT has a handler of its own, the job raised it itself."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
