"""Runs sync handlers in the thread of the sync test that waits for them.

A worker runs sync handlers in threads of its own. A test without an event loop expects its own thread there: Django's
test transaction, Flask's application context, a debugger. So when a sync call runs jobs, a helper thread gets the event
loop, and the waiting caller's thread executes the sync handlers.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar

from perdure.lifecycle.bridges.portal import Portal
from perdure.worker.attempt.outcomes import AttemptInterrupted
from perdure.worker.attempt.running import Running
from perdure.worker.execution.threads import Execute, Finish, ThreadCrew

T = TypeVar("T")


class Caller:
    """A thread that waits for a coroutine, and meanwhile executes the functions given to it."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def ask(self, work: Callable[[], None]) -> None:
        """Have this executed in the waiting thread."""
        self._inbox.put(work)

    def dismiss(self) -> None:
        """End the wait."""
        self._inbox.put(None)

    def serve(self) -> None:
        """Execute functions until dismissed; changes of context variables are discarded."""
        while work := self._inbox.get():
            copy_context().run(work)


WAITING: Final[ContextVar[Caller | None]] = ContextVar("perdure_caller", default=None)
"""The thread that waits for the current sync call, if any."""


class CallersThread(ThreadCrew):
    """A thread crew of one: the waiting thread."""

    def __init__(self, caller: Caller, execute: Execute, finish: Finish, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(1, execute, finish, loop)
        self._caller = caller

    @property
    def waiting(self) -> int:
        """Do nothing: a caller that works step by step needs no thread in advance."""
        return 0

    def submit(self, running: Running) -> None:
        """Execute an attempt in the caller's thread."""
        running.interrupt = lambda: self._interrupt(running)
        self._caller.ask(partial(self._attend, running))

    def give_up(self, running: Running) -> None:
        """Do nothing: the caller's thread cannot be replaced, and is free when its handler ends."""

    def close(self) -> None:
        """Do nothing: the thread belongs to the caller."""

    def _attend(self, running: Running) -> None:
        try:
            with self._lock:
                self._threads[self._caller.ident] = running
            outcome = self._execute(running)
        except AttemptInterrupted:
            outcome = running.outcome_when_stopped()
        finally:
            with self._lock:
                self._threads.clear()
        self._loop.call_soon_threadsafe(self._finish, running, outcome)


class LendingPortal(Portal):
    """Runs a coroutine for a sync caller on a loop of its own; sync handlers run in the caller's thread."""

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; returns or raises what it does."""
        caller = Caller()
        answer: Future[T] = Future()
        context = copy_context()
        context.run(WAITING.set, caller)
        run = partial(context.run, _run, coroutine, answer, caller)
        helper = threading.Thread(target=run, name="perdure-sandbox-sync", daemon=True)
        helper.start()
        caller.serve()
        helper.join()
        return answer.result()

    def close(self) -> None:
        """Do nothing: no resource outlives a call."""


def _run(coroutine: Coroutine[Any, Any, T], answer: Future[T], caller: Caller) -> None:
    try:
        answer.set_result(asyncio.run(coroutine))
    except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
        answer.set_exception(error)
    finally:
        caller.dismiss()
