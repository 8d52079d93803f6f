"""An attempt under way, and how it can be made to stop."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.domain.job import Claim
from perdure.domain.outcome import Cancelled, Failed, Failure, Outcome, Released
from perdure.kinds.kind import Kind
from perdure.policy.failures import lineage, type_name
from perdure.worker.context import Context, StopFlag


class Stop(StrEnum):
    """Why an attempt is asked to stop."""

    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    CLOSING = "worker is closing"
    LOST = "lease lost"


class Running(Struct, eq=False):
    """One attempt under way. `interrupt` asks its task, thread or process to stop; `force` makes it, where possible."""

    claim: Claim
    kind: Kind
    flag: StopFlag
    started: float
    interrupt: Callable[[], object] | None = None
    force: Callable[[], object] | None = None
    timer: TimerHandle | None = None
    stop: Stop | None = None
    why: str | None = None  # in the words of whoever wants it called off
    begun: bool = False  # its task has taken its first step; without meaning for threads
    given_up: bool = False
    context: Context | None = None

    def outcome_when_stopped(self) -> Outcome | None:
        """What it means that the attempt was stopped; None: nothing, it is no longer ours."""
        match self.stop:
            case Stop.TIMED_OUT:
                limit = format_duration(self.kind.timeout) if self.kind.timeout else ""
                failure = Failure(type_name(TimeoutError), f"the attempt exceeded its time limit of {limit}")
                return Failed(failure, timed_out=True, kinds=lineage(TimeoutError))
            case Stop.CANCELLED:
                return Cancelled(self.why or "cancelled while running")
            case Stop.CLOSING:
                return Released()
            case _:
                return None
