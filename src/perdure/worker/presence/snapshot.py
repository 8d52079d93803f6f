"""Snapshots of what a worker is doing, for a signal or a page.

It may be called from any thread at any moment, so it reads without a lock.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from perdure.clock import Clock
from perdure.domain.worker import NewWorker
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.process.stacks import Attempt, Head, LoopState, Occupied, Snapshot, describe
from perdure.worker.execution.executor import Executor
from perdure.worker.presence.phase import WorkerPhase
from perdure.worker.recording.acknowledger import Acknowledger


class WorkerSnapshots:
    """The current state of one worker."""

    def __init__(
        self,
        worker: NewWorker,
        phase: WorkerPhase,
        executor: Executor,
        acknowledger: Acknowledger,
        loops: Sequence[Loop[Any]],
        clock: Clock,
    ) -> None:
        self._worker = worker
        self._phase = phase
        self._executor = executor
        self._acknowledger = acknowledger
        self._loops = loops
        self._clock = clock
        self._opened = clock.monotonic()

    def describe(self, loop: asyncio.AbstractEventLoop, innermost: FrameType | None = None) -> Snapshot:
        """The worker, its attempts, and every thread and task; the calling thread from `innermost` outwards."""
        here = innermost or sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's frame
        return describe(loop, head=self._head(), occupied=self.occupied(), innermost=here)

    def occupied(self) -> list[Occupied]:
        """Every running attempt, and the task, thread or process that runs it."""
        now = self._clock.monotonic()
        return [
            Occupied(
                Attempt(
                    job_id=running.claim.job_id,
                    kind=running.claim.kind,
                    attempt=running.claim.attempt,
                    seconds=now - running.started,
                    mode=running.kind.mode.value,
                    pid=running.pid,
                ),
                thread=running.thread,
                task=running.task,
            )
            for running in list(self._executor.running)
        ]

    def _head(self) -> Head:
        now = self._clock.monotonic()
        return Head(
            worker=self._worker.name,
            version=self._worker.version,
            uptime=now - self._opened,
            phase=self._phase.phase.value,
            running=len(self._executor.running),
            concurrency=self._worker.concurrency,
            backlog=self._acknowledger.backlog,
            loops=tuple(_state(loop) for loop in self._loops),
        )


def _state(loop: Loop[Any]) -> LoopState:
    since = loop.running_since
    running_for = None if since is None else loop.timer.monotonic() - since
    return LoopState(name=loop.name, ticks=loop.ticks, skipped=loop.skipped, running_for=running_for)
