"""The process of one isolated attempt: import, report ready, take one order, run it, report the outcome, end.

The process may be started in advance, and then waits. It obeys only its parent: messages come over the socket, and a
SIGTERM from anywhere else (service managers send it to every process they know) is ignored, because the worker gives
its handlers time before it asks them to stop. When the parent is gone, so is the process.
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import logging
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from perdure.clock import SystemClock
from perdure.domain.jobs.outcome import Failed, Failure, Outcome
from perdure.errors import PayloadError, SettingsError, StoreError
from perdure.flows.park import Park, parked_in
from perdure.kinds.declared import Address, find_declared
from perdure.kinds.kind import Kind, is_async
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.lifecycle.process.parent_death import die_with_parent
from perdure.policy.failures import bad_arguments, failure_of, lineage
from perdure.policy.retries.triage import classify
from perdure.worker.attempt.context.context import CURRENT, Context
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.outcomes import (
    NOTHING,
    AttemptInterrupted,
    cancelled_from_inside,
    done,
    with_journal,
)
from perdure.worker.attempt.services import Services
from perdure.worker.isolation.child_services import RelayedCheckpoints, RelayedFlows, RelayedGates, RelayedSpending
from perdure.worker.isolation.memory import MemoryLimit
from perdure.worker.isolation.wire import (
    LINE_LIMIT_BYTES,
    READY,
    STOPPED,
    Notice,
    Order,
    Place,
    Report,
    from_line,
    raised_by,
    report_of,
    stored_of,
    to_line,
)

_COUNTED_WITHIN_SECONDS: Final = 5.0


def main() -> None:
    """Run one attempt; the first argument is the `Place`."""
    place = from_line(sys.argv[1].encode(), Place)
    die_with_parent(place.parent)
    faulthandler.enable()
    faulthandler.register(signal.SIGQUIT, all_threads=True)  # before it kills, the parent asks for stacks
    signal.signal(signal.SIGTERM, _ignore)
    line = ParentSocket(place.socket)
    try:
        _import(place)
    except BaseException as error:  # noqa: BLE001 - every error belongs in the job's record
        line.send(report_of(_not_imported(place, error)))
        return
    line.send(READY)
    order = line.order()
    if order is not None:
        line.send(IsolatedAttempt(order, line).run())


class ParentSocket:
    """The child's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._incoming = self._socket.makefile("rb")
        self._has_reported = False
        self._asking = threading.Lock()
        self._unanswered: deque[Future[Notice]] = deque()

    def send(self, report: Report) -> None:
        """Send a message; if that fails, the parent is gone."""
        self._has_reported = not report.is_ready
        with suppress(OSError), self._asking:
            self._socket.sendall(to_line(report))

    def ask(self, request: Report) -> Future[Notice]:
        """Ask the parent to store or find something; its answer arrives later."""
        answer: Future[Notice] = Future()
        line = to_line(request)
        if len(line) > LINE_LIMIT_BYTES:
            raise PayloadError(
                "request", f"to the worker has {len(line)} bytes, {LINE_LIMIT_BYTES} are allowed at once"
            )
        with self._asking:  # so that answers arrive in the order of requests
            self._unanswered.append(answer)
            self._socket.sendall(line)
        return answer

    def order(self) -> Order | None:
        """Wait for the order; None: the parent has no order."""
        line = self._incoming.readline()
        return from_line(line, Order) if line else None

    def listen(self, hear: Callable[[Notice], None]) -> None:
        """Pass on every message, in a separate thread; end with the whole process group if the parent is gone."""
        threading.Thread(target=self._listen, args=(hear,), name="perdure-notices", daemon=True).start()

    def _listen(self, hear: Callable[[Notice], None]) -> None:
        with suppress(OSError):
            for line in self._incoming:
                notice = from_line(line, Notice)
                if notice.kept is None and notice.trouble is None:
                    hear(notice)
                else:
                    self._answer(notice)
        if not self._has_reported:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _answer(self, notice: Notice) -> None:
        answer = self._unanswered.popleft()
        if not answer.set_running_or_notify_cancel():
            return
        if notice.trouble is None:
            answer.set_result(notice)
        else:
            answer.set_exception(raised_by(notice))


class IsolatedAttempt:
    """The one attempt that runs here."""

    def __init__(self, order: Order, line: ParentSocket) -> None:
        self._order = order
        self._line = line
        self._flag = StopFlag(closing=order.closing)
        self._interrupt: Callable[[], object] | None = None
        self._in_handler = False

    def run(self) -> Report:
        """Run the handler to its end."""
        kind = find_declared(self._order.address)
        if kind is None:
            return report_of(_not_declared(self._order.address))
        try:
            args, kwargs = kind.signature.decode(self._order.claim.args)
        except PayloadError as error:
            return report_of(bad_arguments(error))
        blocking = not is_async(kind.handler)
        context = self._context(kind, blocking=blocking)
        CURRENT.set(context)
        if kind.hooks.tracer is not None:
            kind.hooks.tracer.in_process(self._order.trace)
        limit = MemoryLimit(kind.memory)
        self._line.listen(self._receive)
        try:
            with limit:
                run = self._run_sync if blocking else self._run_async
                result = run(context, kind, kind.with_context(context, args), kwargs)
            outcome: Outcome = NOTHING if result is None else done(result)
            if context.opened is not None:
                outcome = with_journal(context.opened, outcome) or outcome
            return report_of(outcome)
        except (AttemptInterrupted, asyncio.CancelledError) as error:
            return STOPPED if self._flag.reason else report_of(cancelled_from_inside(error))
        except (Exception, SystemExit, Park, BaseExceptionGroup) as error:  # noqa: BLE001 - it is the outcome
            return report_of(parked_in(error) or _judged(error, kind, limit))
        finally:
            self._tell_stored(kind)

    def _tell_stored(self, kind: Kind) -> None:
        """Let the worker count the jobs that the handler has enqueued: this process exports no metrics."""
        counted = kind.hooks.enqueued
        if counted is not None and (jobs := counted.take()):
            with suppress(OSError, StoreError, TimeoutError):
                self._line.ask(stored_of(jobs)).result(_COUNTED_WITHIN_SECONDS)

    def _context(self, kind: Kind, *, blocking: bool) -> Context:
        order, flows = self._order, RelayedFlows(self._line, self._order.keep_lines, kind.hooks)
        services = Services(
            checkpoints=RelayedCheckpoints(self._line),
            spending=RelayedSpending(self._line, kind),
            open_journal=flows.open_journal,
            open_lines=flows.open_lines,
            open_gate=RelayedGates(self._line, kind).open_gate,
            hooks=kind.hooks,
        )
        started = SystemClock().monotonic() - order.age
        return Context(order.claim, self._flag, services, started=started, triage=kind.triage, blocking=blocking)

    def _receive(self, notice: Notice) -> None:
        if notice.closing:
            self._flag.close()
        if notice.stopping is not None and self._flag.reason is None:
            self._flag.stop(notice.stopping)
            if self._interrupt is not None:
                self._interrupt()

    def _run_async(self, context: Context, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        async def attempt() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            if task is not None:
                self._interrupt = lambda: loop.call_soon_threadsafe(task.cancel)
                if self._flag.reason:
                    task.cancel()
            try:
                async with kind.hooks.lifespans.opened(_not_closed):
                    return await kind.hooks.call(kind.handler, context, args, kwargs)
            finally:
                self._interrupt = None
                await _settled(context)

        return asyncio.run(attempt())

    def _run_sync(self, context: Context, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        here = threading.get_ident()
        signal.signal(signal.SIGTERM, self._raise_if_stopping)
        self._interrupt = lambda: signal.pthread_kill(here, signal.SIGTERM)
        self._in_handler = True
        try:
            self._raise_if_stopping()
            with asyncio.Runner() as loop, kind.hooks.lifespans.opened_blocking(_not_closed, loop.run):
                return kind.hooks.call_blocking(kind.handler, context, args, kwargs, loop.run)
        finally:
            self._in_handler = False
            self._interrupt = None
            run_without_loop(_settled(context))

    def _raise_if_stopping(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Runs in the handler's own thread and wakes it from a blocking call; raises once."""
        if self._flag.reason and self._in_handler:
            self._in_handler = False
            raise AttemptInterrupted


async def _settled(context: Context) -> None:
    """Write the handler's log lines that are not written yet."""
    journal = context.opened
    if journal is not None and journal.has_new_progress:
        await journal.reach(journal.recorder.show_now())
    if context.lines is not None:
        await context.lines.write_rest()


def _not_closed(lifespan: str, error: BaseException) -> None:
    logging.getLogger("perdure").error("lifespan %s failed to close", lifespan, exc_info=error)


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Ignore a signal: the worker decides when to stop."""


def _import(place: Place) -> None:
    if place.main is not None:
        from multiprocessing.spawn import prepare  # noqa: PLC0415 - rarely needed, and slow to load

        prepare(place.main)
    else:
        importlib.import_module(place.module)


def _judged(error: BaseException, kind: Kind, limit: MemoryLimit) -> Outcome:
    outcome = classify(error, kind.triage, now=SystemClock().now())
    if isinstance(error, MemoryError) and isinstance(outcome, Failed):
        failure = outcome.failure
        explained = Failure(failure.error_type, limit.explain(failure.message), failure.traceback)
        return Failed(explained, outcome.retry_after, outcome.timed_out, outcome.kinds)
    return outcome


def _not_imported(place: Place, error: BaseException) -> Failed:
    failure = failure_of(error)
    message = f"module {place.module} could not be imported in the attempt's own process: {failure.message}"
    return Failed(Failure(failure.error_type, message, failure.traceback), kinds=lineage(type(error)))


def _not_declared(address: Address) -> Failed:
    error = SettingsError(
        f"job {address.name}",
        f"cannot run isolated: importing {address.module} in a fresh process does not declare it;"
        " declare it at the top level of the module that defines its handler",
    )
    return Failed(failure_of(error), kinds=lineage(SettingsError))
