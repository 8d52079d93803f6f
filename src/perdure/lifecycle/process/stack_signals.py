"""SIGQUIT and SIGUSR1: a process reports its stacks, even if it is stuck.

First, before any Python runs, faulthandler's handler, in C, writes the interrupted stack to a pipe. Then the first of
these that can run makes the report:

- the main thread, in an ordinary signal handler. It runs between two bytecodes, so a handler that loops in Python, or
  sleeps, does not block it; nor does C code that checks for signals, as a regular expression does;
- a thread that waits at the other end of the pipe. It runs while the main thread is in C code that has released the
  interpreter: a query, a name lookup, a lock.

The pipe may stay empty: a signal that reaches an ending thread finds no stack. The main thread still gets it.

C code that keeps the interpreter blocks both of them. The report then comes when it releases the interpreter, and shows
the stack at the time of the signal. For code that never releases it there is SIGABRT, which faulthandler handles at
once: it prints the bare stacks of all threads and ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, Self

from perdure.clock import Clock, SystemClock
from perdure.lifecycle.process.exits import EXIT_STACKS

_SIGNALS: Final = (signal.SIGUSR1, signal.SIGQUIT)
_MAIN_THREAD_FIRST_SECONDS: Final = 0.05  # the main thread knows more, and the pipe is filled in pieces
_POLL_INTERVAL_SECONDS: Final = 1
_LATE_AFTER_SECONDS: Final = 0.5
_FLUSH_TIMEOUT_SECONDS: Final = 1.0
_READ_BYTES: Final = 65_536
_STDERR: Final = 2

Report = Callable[[FrameType | None], str]


class StackSignals:
    """While entered, SIGUSR1 prints the report, and SIGQUIT prints it and ends the process with 2 without closing.

    `report` gets the interrupted frame, if it is called in the interrupted thread. Only the main thread may enter.
    """

    def __init__(self, report: Report, clock: Clock | None = None) -> None:
        self._report = report
        self._clock = clock or SystemClock()
        self._busy = threading.Lock()
        self._answered: set[signal.Signals] = set()  # by the listening thread, before the main thread could
        self._ran_at = self._clock.monotonic()  # when the listening thread last could

    def __enter__(self) -> Self:
        if not faulthandler.is_enabled():
            faulthandler.enable(_STDERR)  # for SIGABRT, and for crashes of C code
        self._pipes = {number: _Pipe() for number in _SIGNALS}
        self._before: dict[int, Any] = {}
        self._end, self._ended = os.pipe()
        for number, pipe in self._pipes.items():
            self._before[number] = signal.signal(number, self._interrupted)
            # Other threads run on meanwhile: to read their stacks without the interpreter's lock can end the process.
            faulthandler.register(number, pipe.writer, all_threads=False, chain=True)
        self._thread = threading.Thread(target=self._listen, name="perdure-stacks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._pipes:
            faulthandler.unregister(number)
            signal.signal(number, self._before[number] or signal.SIG_DFL)
        os.close(self._ended)
        self._thread.join()
        os.close(self._end)
        for pipe in self._pipes.values():
            pipe.close()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self._answer(signal.Signals(number), frame)

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        by_reader = {pipe.reader: number for number, pipe in self._pipes.items()}
        for reader in by_reader:
            poll.register(reader, select.POLLIN)
        while True:
            self._ran_at = self._clock.monotonic()
            ready = [descriptor for descriptor, _ in poll.poll(_POLL_INTERVAL_SECONDS * 1000)]
            if self._end in ready:
                return
            time.sleep(_MAIN_THREAD_FIRST_SECONDS)
            for reader in ready:
                self._answer(by_reader[reader], None)

    def _answer(self, number: signal.Signals, frame: FrameType | None) -> None:
        if not self._busy.acquire(blocking=False):  # a report is being made already
            return
        try:
            pipe = self._pipes[number]
            held = self._clock.monotonic() - self._ran_at - _POLL_INTERVAL_SECONDS
            bare = pipe.drain()
            if self._is_answered(number, bare, frame):
                return
            _print(self._text(frame))
            if held > _LATE_AFTER_SECONDS:
                _print(f"C code has kept the interpreter for {held:.1f} s or more; when the signal came:\n{bare}")
            if number is signal.SIGQUIT:
                _flush()
                os._exit(EXIT_STACKS)
        finally:
            self._busy.release()

    def _is_answered(self, number: signal.Signals, bare: str, frame: FrameType | None) -> bool:
        """Whether the other thread has answered; the listening thread knows it by the pipe alone."""
        if frame is None:
            if bare:
                self._answered.add(number)  # the main thread gets the signal, too
            return not bare
        was_answered = not bare and number in self._answered
        self._answered.discard(number)
        return was_answered

    def _text(self, frame: FrameType | None) -> str:
        try:
            return self._report(frame)
        except Exception as error:  # noqa: BLE001 - a request for stacks must get an answer
            return f"the stacks could not be read: {type(error).__name__}: {error}\n"


class _Pipe:
    """What faulthandler writes when a signal comes."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)  # excess is lost; a signal handler must never wait

    def drain(self) -> str:
        """Read everything in the pipe."""
        pieces = []
        with suppress(BlockingIOError):
            while piece := os.read(self.reader, _READ_BYTES):
                pieces.append(piece)
        return b"".join(pieces).decode(errors="replace")

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


def _print(text: str) -> None:
    """Write to standard error, bypassing Python's buffer: the interrupted code may hold its lock."""
    rest = text.encode(errors="replace")
    with suppress(OSError):
        while rest:
            rest = rest[os.write(_STDERR, rest) :]


def _flush() -> None:
    """Flush what the process has printed; what cannot be written soon is lost."""

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()

    flushing = threading.Thread(target=flush, daemon=True)
    flushing.start()
    flushing.join(_FLUSH_TIMEOUT_SECONDS)
