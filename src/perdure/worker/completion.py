"""Waits until nothing of a worker runs any more (A18): attempts, ticks of loops, and records not yet written.

An embedding program calls this before it closes HTTP and the database. An abandoned attempt or tick counts as long as
it runs: a handler that ignores its cancellation may still use resources that are about to close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar, Final

from perdure.errors import RunningJob, StillRunning
from perdure.events import CompletionAwaited, Emitter
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.timer import REAL_TIMER, Timer, pause
from perdure.worker.execution.executor import Executor
from perdure.worker.recording.acknowledger import Acknowledger

COMPLETION_TIMEOUT: Final = timedelta(seconds=30)
_POLL_INTERVAL_SECONDS: Final = 0.01


class Completion:
    """Waits for the end of one worker. Tests replace `timer`."""

    timer: ClassVar[Timer] = REAL_TIMER

    def __init__(
        self,
        worker: str,
        emitter: Emitter,
        *,
        executor: Executor,
        loops: Loops,
        acknowledger: Acknowledger,
        is_closed: Callable[[], bool],
    ) -> None:
        self._worker = worker
        self._emitter = emitter
        self._executor = executor
        self._loops = loops
        self._acknowledger = acknowledger
        self._is_closed = is_closed

    async def wait(self, timeout: timedelta) -> None:  # noqa: ASYNC109 - asyncio.timeout could not say what still runs
        """Wait until the worker is closed and nothing runs; past the timeout StillRunning names what does."""
        await asyncio.sleep(0)  # a `run` whose task was just made takes its first step
        within = timeout.total_seconds()
        deadline = self.timer.monotonic() + within
        if not self._is_over():
            jobs, loops = self._jobs(), self._loops.under_way()
            self._emitter.emit(CompletionAwaited(self._worker, len(jobs), loops, within))
        while not self._is_over():
            remaining = deadline - self.timer.monotonic()
            if remaining <= 0:
                raise self._still_running(within)
            await pause(self.timer, asyncio.Event(), min(remaining, _POLL_INTERVAL_SECONDS))

    def _is_over(self) -> bool:
        return self._is_closed() and not self._executor.running and not self._loops.under_way()

    def _still_running(self, within: float) -> StillRunning:
        jobs, loops, backlog = self._jobs(), self._loops.under_way(), self._acknowledger.backlog
        names = [f"job {job.kind} {job.job_id} (since {job.since:%H:%M:%S} UTC)" for job in jobs] + list(loops)
        if backlog:
            names.append(f"{backlog} attempts to be recorded")
        return StillRunning(tuple(names) or ("the close of the worker",), within, jobs=jobs, loops=loops)

    def _jobs(self) -> tuple[RunningJob, ...]:
        claims = sorted((running.claim for running in self._executor.running), key=lambda claim: claim.claimed_at)
        return tuple(RunningJob(claim.kind, claim.job_id, claim.claimed_at) for claim in claims)
