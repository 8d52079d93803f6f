"""Runs sync handlers: threads take attempts from one queue and return outcomes to the event loop.

Threads are started when needed and are daemons: a handler that never ends cannot keep the process alive. An interrupted
handler gets an exception in its thread at its next bytecode; if it still does not end, its thread is abandoned and
replaced.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections import deque
from collections.abc import Callable

from perdure.domain.jobs.outcome import Outcome
from perdure.worker.attempt.outcomes import AttemptInterrupted, broken
from perdure.worker.attempt.running import Running

Execute = Callable[[Running], Outcome | None]
Finish = Callable[[Running, Outcome | None], None]
MakeThreads = Callable[[int, Execute, Finish, asyncio.AbstractEventLoop], "ThreadCrew"]


class ThreadCrew:
    """At most `size` threads that execute attempts."""

    def __init__(self, size: int, execute: Execute, finish: Finish, loop: asyncio.AbstractEventLoop) -> None:
        self._size = size
        self._execute = execute
        self._finish = finish
        self._loop = loop
        self._inbox: queue.SimpleQueue[Running | None] = queue.SimpleQueue()
        self._ended: deque[tuple[Running, Outcome | None]] = deque()
        self._is_delivery_called = False
        self._lock = threading.Lock()
        self._threads: dict[int, Running | None] = {}

    @property
    def waiting(self) -> int:
        """Attempts that wait for a thread."""
        return self._inbox.qsize()

    def submit(self, running: Running) -> None:
        """Execute an attempt as soon as a thread is free."""
        running.interrupt = lambda: self._interrupt(running)
        self._inbox.put(running)
        with self._lock:
            idle = sum(current is None for current in self._threads.values())
            needed = idle < self._inbox.qsize() and len(self._threads) < self._size
        if needed:
            self._start_thread()

    def give_up(self, running: Running) -> None:
        """Replace the thread that is stuck in this attempt."""
        with self._lock:
            stuck = [ident for ident, current in self._threads.items() if current is running]
            for ident in stuck:
                del self._threads[ident]
        if stuck and self._inbox.qsize():
            self._start_thread()

    def close(self) -> None:
        """Let idle threads end; busy ones end after their attempt."""
        for _ in range(len(self._threads)):
            self._inbox.put(None)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name="perdure-handler", daemon=True)
        thread.start()
        if thread.ident is not None:
            with self._lock:
                self._threads.setdefault(thread.ident, None)

    def _work(self) -> None:
        ident = threading.get_ident()
        with self._lock:
            self._threads.setdefault(ident, None)
        while (running := self._inbox.get()) is not None:
            outcome, replaced = self._attempt(ident, running)
            self._ended.append((running, outcome))
            if not self._is_delivery_called:
                self._is_delivery_called = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    if not self._loop.is_closed():
                        raise
                    return  # the attempt was abandoned, and its worker has closed
            if replaced:
                return
        with self._lock:
            self._threads.pop(ident, None)

    def _attempt(self, ident: int, running: Running) -> tuple[Outcome | None, bool]:
        """Execute an attempt in this thread; returns its outcome, and whether it was abandoned.

        When it returns, no interrupt for this thread is pending.
        """
        outcome: Outcome | None = None
        ended = False
        while True:
            try:
                if not ended:
                    with self._lock:
                        self._threads[ident] = running
                    outcome = self._execute(running)
                    ended = True
                return outcome, self._let_go(ident)
            except AttemptInterrupted:  # one that arrives after the end changes nothing
                if not ended:
                    outcome = running.outcome_when_stopped()
                    ended = True
            except BaseException as error:  # noqa: BLE001 - the attempt must end, and the thread must not
                outcome = broken(error)
                ended = True

    def _let_go(self, ident: int) -> bool:
        with self._lock:
            replaced = ident not in self._threads
            if not replaced:
                self._threads[ident] = None
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), None)
        return replaced

    def _deliver(self) -> None:
        self._is_delivery_called = False
        while self._ended:
            self._finish(*self._ended.popleft())

    def _interrupt(self, running: Running) -> None:
        with self._lock:
            for ident, current in self._threads.items():
                if current is running:
                    error = ctypes.py_object(AttemptInterrupted)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), error)
