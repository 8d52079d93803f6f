"""The thread of a sync test, lent to the sync handlers that it waits for.

A worker runs sync handlers in threads of its own. A test without an event loop expects to find its own thread there:
Django's test transaction, Flask's application context, a debugger. So when a sync call runs jobs, a helper thread gets
the event loop, and the calling thread, which has nothing to do but wait, executes the sync handlers.
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
    """A thread that waits for a coroutine, and does what it is asked to meanwhile."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def ask(self, work: Callable[[], None]) -> None:
        """Have this done in the thread that waits."""
        self._inbox.put(work)

    def dismiss(self) -> None:
        """There is nothing more to wait for."""
        self._inbox.put(None)

    def serve(self) -> None:
        """Do what is asked until dismissed; nothing that it sets in a context variable stays."""
        while work := self._inbox.get():
            copy_context().run(work)


WAITING: Final[ContextVar[Caller | None]] = ContextVar("perdure_caller", default=None)
"""The thread that waits for the sync call that we are part of, if any."""


class CallersThread(ThreadCrew):
    """A crew of one: the thread that waits."""

    def __init__(self, caller: Caller, execute: Execute, finish: Finish, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(1, execute, finish, loop)
        self._caller = caller

    @property
    def waiting(self) -> int:
        """Nothing runs ahead of a caller that does one thing after another."""
        return 0

    def submit(self, running: Running) -> None:
        """Execute an attempt in the caller's thread."""
        running.interrupt = lambda: self._interrupt(running)
        self._caller.ask(partial(self._attend, running))

    def give_up(self, running: Running) -> None:
        """Nobody can take the caller's place: it is free when its handler ends."""

    def close(self) -> None:
        """The thread is not ours to end."""

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
    """Runs a coroutine for a sync caller on a loop of its own, with the caller's thread at its service."""

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and give back what it returns or raises."""
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
        """Nothing outlives a call."""


def _run(coroutine: Coroutine[Any, Any, T], answer: Future[T], caller: Caller) -> None:
    try:
        answer.set_result(asyncio.run(coroutine))
    except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
        answer.set_exception(error)
    finally:
        caller.dismiss()
