"""What a process is doing: every thread and task with its stack, and the job that each runs.

A snapshot only reads: it takes no lock, needs no event loop, and can be made from any thread while the loop is blocked.
So for running threads it is true for an instant only. It is plain data: `text` words it for people, and
`msgspec.to_builtins` makes JSON of it.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, Final, NamedTuple

from msgspec import Struct

_FRAMES_SHOWN: Final = 200
_OPAQUE: Final = ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper", "FutureIter")


class Frame(Struct, frozen=True):
    """One line of a stack."""

    file: str
    line: int
    function: str
    source: str


class Attempt(Struct, frozen=True, kw_only=True):
    """A running attempt. `mode` is where it runs: task, thread or process; `pid` is that of its own process."""

    job_id: str
    kind: str
    attempt: int
    seconds: float
    mode: str
    pid: int | None = None

    def __str__(self) -> str:
        where = "" if self.pid is None else f", in process {self.pid}"
        return f"job {self.job_id} kind {self.kind} attempt {self.attempt}, for {self.seconds:.1f} s{where}"


class Occupied(NamedTuple):
    """An attempt and its runner: a thread by its ident, or a task."""

    attempt: Attempt
    thread: int | None = None
    task: asyncio.Task[Any] | None = None


class ThreadStack(Struct, frozen=True, kw_only=True):
    """A thread, outermost frame first, and the attempt that it runs."""

    name: str
    ident: int
    daemon: bool
    frames: tuple[Frame, ...]
    attempt: Attempt | None = None


class TaskStack(Struct, frozen=True, kw_only=True):
    """A task down to the point where it waits, what it waits for, and the attempt that it runs."""

    name: str
    coroutine: str
    frames: tuple[Frame, ...]
    awaits: str
    attempt: Attempt | None = None


class LoopState(Struct, frozen=True, kw_only=True):
    """A periodic loop: how often it has ticked and skipped, and how long its tick runs; None: it rests."""

    name: str
    ticks: int
    skipped: int
    running_for: float | None = None


class Head(Struct, frozen=True, kw_only=True):
    """A worker's own state."""

    worker: str
    version: str
    uptime: float
    phase: str
    running: int
    concurrency: int
    backlog: int  # ended attempts that are not recorded yet
    loops: tuple[LoopState, ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """A whole process at one instant; `head` is None while no worker is open."""

    pid: int
    python: str
    head: Head | None
    threads: tuple[ThreadStack, ...]
    tasks: tuple[TaskStack, ...]
    attempts: tuple[Attempt, ...]


def describe(
    loop: asyncio.AbstractEventLoop | None = None,
    *,
    head: Head | None = None,
    occupied: Iterable[Occupied] = (),
    innermost: FrameType | None = None,
) -> Snapshot:
    """Look at every thread, and at every task of `loop`.

    The calling thread is shown from `innermost` outwards, by default from the caller of this function.
    """
    known = list(occupied)
    here = innermost or sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's frame
    by_thread = {one.thread: one.attempt for one in known if one.thread is not None}
    by_task = {id(one.task): one.attempt for one in known if one.task is not None}
    return Snapshot(
        pid=os.getpid(),
        python=sys.version.split()[0],
        head=head,
        threads=tuple(_threads(here, by_thread)),
        tasks=tuple(_tasks(loop, by_task)) if loop is not None else (),
        attempts=tuple(one.attempt for one in sorted(known, key=lambda one: -one.attempt.seconds)),
    )


def thread_frames(ident: int | None) -> tuple[Frame, ...]:
    """The stack of one thread, outermost first; empty if there is no such thread."""
    frame = _current_frames().get(ident or 0)
    return _read(frame) if frame is not None else ()


def callback_frames(ident: int | None) -> tuple[Frame, ...]:
    """The stack of an event loop's thread from the callback that runs inwards; all of it if none runs."""
    frames = thread_frames(ident)
    begins = [place for place, frame in enumerate(frames, 1) if frame.file == asyncio.events.__file__]
    return frames[begins[-1] :] if begins else frames


def task_frames(task: asyncio.Task[Any]) -> tuple[tuple[Frame, ...], str]:
    """The stack of a task down to the point at which it waits, and what it waits for there."""
    frames: list[Frame] = []
    waits: Any = task.get_coro()
    for _ in range(_FRAMES_SHOWN):
        frame, inner = _step(waits)
        if frame is not None:
            frames += _line_of(frame)
        if inner is None:
            break
        waits = inner
    return tuple(frames), _word(task, waits)


def text(snapshot: Snapshot) -> str:
    """Word a snapshot for people: innermost line last, as in a traceback."""
    return "\n".join(_plain(line) for line in _lines(snapshot)) + "\n"


def stack_text(frames: Iterable[Frame]) -> str:
    """Word a stack for people."""
    return "\n".join(_plain(line) for line in _stack(frames))


def _threads(here: FrameType, by_thread: Mapping[int, Attempt]) -> Iterator[ThreadStack]:
    names = {thread.ident: thread for thread in threading.enumerate()}
    me = threading.get_ident()
    for ident, frame in sorted(_current_frames().items(), key=lambda item: item[0] not in by_thread):
        thread = names.get(ident)
        yield ThreadStack(
            name=thread.name if thread else "unknown to Python",
            ident=ident,
            daemon=thread.daemon if thread else True,
            frames=_read(here if ident == me else frame),
            attempt=by_thread.get(ident),
        )


def _tasks(loop: asyncio.AbstractEventLoop, by_task: Mapping[int, Attempt]) -> Iterator[TaskStack]:
    for task in sorted(asyncio.all_tasks(loop), key=lambda task: (id(task) not in by_task, task.get_name())):
        frames, awaits = task_frames(task)
        coroutine = getattr(task.get_coro(), "__qualname__", "") or repr(task.get_coro())
        attempt = by_task.get(id(task))
        yield TaskStack(name=task.get_name(), coroutine=coroutine, frames=frames, awaits=awaits, attempt=attempt)


def _step(waits: Any) -> tuple[FrameType | None, Any]:
    """One step down a chain of awaits: the frame that stands here, and what it waits for."""
    if inspect.iscoroutine(waits):
        return waits.cr_frame, waits.cr_await
    if inspect.isasyncgen(waits):
        return waits.ag_frame, waits.ag_await
    if inspect.isgenerator(waits):
        return waits.gi_frame, waits.gi_yieldfrom
    if type(waits).__name__ in _OPAQUE:  # they hold what they wait for, and have no name for it
        return None, next((held for held in gc.get_referents(waits) if _can_wait(held)), None)
    return None, None


def _can_wait(held: Any) -> bool:
    return inspect.iscoroutine(held) or inspect.isasyncgen(held) or asyncio.isfuture(held)


def _word(task: asyncio.Task[Any], waits: Any) -> str:
    if isinstance(waits, asyncio.Task):
        return f"task {waits.get_name()}"
    if asyncio.isfuture(waits):
        return f"a {type(waits).__name__.lstrip('_')} that is {'done' if waits.done() else 'not done'}"
    if inspect.iscoroutine(waits) or inspect.isgenerator(waits) or inspect.isasyncgen(waits):
        return "nothing: it runs, or is about to" if not task.done() else "nothing: it has ended"
    return f"a {type(waits).__name__}"


def _current_frames() -> dict[int, FrameType]:
    return sys._current_frames()  # noqa: SLF001 - the documented way to the stacks of other threads


def _read(frame: FrameType) -> tuple[Frame, ...]:
    lines = traceback.extract_stack(frame)
    own = itertools.dropwhile(lambda line: line.filename == threading.__file__, lines)  # how every thread begins
    return tuple(Frame(line.filename, line.lineno or 0, line.name, line.line or "") for line in own)


def _line_of(frame: FrameType) -> list[Frame]:
    extracted = traceback.StackSummary.extract([(frame, frame.f_lineno)])
    return [Frame(line.filename, line.lineno or 0, line.name, line.line or "") for line in extracted]


def _lines(snapshot: Snapshot) -> Iterator[str]:
    yield f"──── process {snapshot.pid}, Python {snapshot.python} ────"
    if snapshot.head is not None:
        yield from _head(snapshot.head)
    by = [*(thread.attempt for thread in snapshot.threads), *(task.attempt for task in snapshot.tasks)]
    at_work = {attempt.job_id for attempt in by if attempt is not None}
    for attempt in snapshot.attempts:
        if attempt.pid is not None:
            yield f"isolated: {attempt}"
        elif attempt.job_id not in at_work:
            yield f"waits to begin: {attempt}"
    for thread in snapshot.threads:
        kind = "daemon thread" if thread.daemon else "thread"
        yield from ("", f"{kind} {thread.name} ({thread.ident:#x}){_runs(thread.attempt)}")
        yield from _stack(thread.frames)
    for task in snapshot.tasks:
        yield from ("", f"task {task.name} {task.coroutine}{_runs(task.attempt)}")
        yield from _stack(task.frames)
        yield f"  awaits {task.awaits}"
    yield f"──── end of process {snapshot.pid} ────"


def _head(head: Head) -> Iterator[str]:
    yield f"worker {head.worker}, perdure {head.version}, up {head.uptime:.0f} s, {head.phase}"
    yield f"running {head.running} of {head.concurrency}, not yet recorded {head.backlog}"
    for loop in head.loops:
        now = "rests" if loop.running_for is None else f"runs for {loop.running_for:.1f} s"
        yield f"loop {loop.name}: {loop.ticks} ticks, {loop.skipped} skipped, {now}"


def _runs(attempt: Attempt | None) -> str:
    return f" runs {attempt}" if attempt else ""


def _stack(frames: Iterable[Frame]) -> Iterator[str]:
    for frame in frames:
        yield f"  {frame.file}:{frame.line} {frame.function}"
        if frame.source:
            yield f"    {frame.source}"


def _plain(line: str) -> str:
    """Names from jobs must not write escapes to the terminal."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)
