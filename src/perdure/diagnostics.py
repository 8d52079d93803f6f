"""Show what a process is doing, for programs that run workers themselves.

`stack_signals` installs the signals of `perdure worker`; `describe` and `text` give the same report as data and as
text, for a page or a log.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure.lifecycle.process.stack_signals import StackSignals
from perdure.lifecycle.process.stacks import Attempt, Frame, Head, LoopState, Snapshot, TaskStack, ThreadStack, text
from perdure.lifecycle.process.stacks import describe as describe_process

if TYPE_CHECKING:
    from perdure.worker.worker import Worker

__all__ = [
    "Attempt",
    "Frame",
    "Head",
    "LoopState",
    "Snapshot",
    "TaskStack",
    "ThreadStack",
    "describe",
    "stack_signals",
    "text",
]


@contextmanager
def stack_signals(workers: Collection[Worker] = ()) -> Iterator[None]:
    """While entered, SIGUSR1 prints the stacks to standard error; SIGQUIT prints them and exits with 2.

    `workers` is read when a signal arrives, so a list may be filled later. Enter it on the event loop, in the main
    thread; in another thread it does nothing, because Python runs signal handlers in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = _running_loop()
    with StackSignals(lambda frame: text(_snapshot(workers, loop, frame))):
        yield


def describe(workers: Collection[Worker] = ()) -> Snapshot:
    """Every thread and task of this process, with the jobs that these workers run; `head` describes the first worker.

    The tasks are those of the running event loop.
    """
    return _snapshot(workers, _running_loop(), sys._getframe(1))  # noqa: SLF001 - the documented way to the caller's frame


def _snapshot(
    workers: Collection[Worker], loop: asyncio.AbstractEventLoop | None, innermost: FrameType | None
) -> Snapshot:
    here = innermost or sys._getframe(1)  # noqa: SLF001 - as above
    snapshots = [worker.describe(here) for worker in tuple(workers)]
    if not snapshots:
        return describe_process(loop, innermost=here)
    first, *others = snapshots
    for other in others:
        first = _joined(first, other)
    return first


def _joined(one: Snapshot, other: Snapshot) -> Snapshot:
    """One snapshot, extended by the attempts of another worker in the same process."""
    by_thread = {thread.ident: thread.attempt for thread in other.threads if thread.attempt is not None}
    by_task = {task.name: task.attempt for task in other.tasks if task.attempt is not None}
    return replace(
        one,
        threads=tuple(replace(each, attempt=each.attempt or by_thread.get(each.ident)) for each in one.threads),
        tasks=tuple(replace(each, attempt=each.attempt or by_task.get(each.name)) for each in one.tasks),
        attempts=(*one.attempts, *other.attempts),
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
