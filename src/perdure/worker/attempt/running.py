"""A running attempt, and how to stop it."""

from __future__ import annotations

from asyncio import Task, TimerHandle
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Cancelled, Failed, Failure, Outcome, Released
from perdure.kinds.kind import Kind
from perdure.policy.failures import lineage, type_name
from perdure.policy.own_settings import read_settings
from perdure.policy.retries.retry import RetrySource
from perdure.worker.attempt.context.context import Context
from perdure.worker.attempt.context.stop_flag import StopFlag


class Stop(StrEnum):
    """Why an attempt is asked to stop."""

    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    CLOSING = "worker is closing"
    LOST = "lease lost"


class Running(Struct, eq=False):
    """One running attempt. `interrupt` asks its task, thread or process to stop; `force` ends it, where possible."""

    claim: Claim
    kind: Kind
    flag: StopFlag
    started: float
    interrupt: Callable[[], object] | None = None
    force: Callable[[], object] | None = None
    timer: TimerHandle | None = None
    stop: Stop | None = None
    why: str | None = None  # the operator's reason for a cancellation
    begun: bool = False  # its task has taken its first step, or a thread has taken it
    dying: bool = False  # it was killed, and ends in a moment
    given_up: bool = False
    context: Context | None = None
    task: Task[Any] | None = None  # that runs it, or waits for its process
    thread: int | None = None  # the ident of the thread that runs it
    pid: int | None = None  # of its own process
    followed: bool = False  # there is a subscriber to the events of every attempt
    exception: BaseException | None = None  # what its handler raised, for those subscribers only
    spawned: bool = False  # its isolated process has asked for children
    mark: Any = None  # of the app's tracer, if it follows this attempt

    @property
    def retry(self) -> RetrySource:
        """The policy for its failures: the job's own, or that of its kind."""
        return read_settings(self.claim.settings).retry or self.kind.retry

    @property
    def timeout(self) -> timedelta | None:
        """Its time limit: the job's own, or that of its kind."""
        if self.claim.settings is None:
            return self.kind.timeout
        return read_settings(self.claim.settings).timeout or self.kind.timeout

    def outcome_when_stopped(self) -> Outcome | None:
        """The outcome of a stopped attempt; None: none, because its claim is lost."""
        match self.stop:
            case Stop.TIMED_OUT:
                limit = format_duration(self.timeout) if self.timeout else ""
                failure = Failure(type_name(TimeoutError), f"the attempt exceeded its time limit of {limit}")
                return Failed(failure, timed_out=True, kinds=lineage(TimeoutError))
            case Stop.CANCELLED:
                return Cancelled(self.why or "cancelled while running")
            case Stop.CLOSING:
                return Released()
            case _:
                return None
