"""What a tracer sees of a job: its enqueue, its attempts, and the calls and waits inside them.

An app has one tracer or none. Without one, each of these places costs one check.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from perdure.domain.jobs.job import Claim, NewJob, Receipt
from perdure.domain.jobs.outcome import Failure, Parked
from perdure.domain.jobs.transition import Transition


class CallKind(StrEnum):
    """What calls a function of the application inside an attempt."""

    STEP = "step"
    POLL = "poll"


class Enqueuing(Protocol):
    """Jobs on their way to the store."""

    def stamp(self, job: NewJob) -> NewJob:
        """The job as it is to be stored."""

    def stored(self, receipts: Sequence[Receipt]) -> None:
        """The store has answered."""


class Calling(Protocol):
    """A call of the application's function."""

    def failed(self, failure: Failure) -> None:
        """The call has raised this error, in which the job's secrets are masked."""

    def pending(self) -> None:
        """The call has no answer yet, or gave a verdict about the whole job."""


class JobTracer(Protocol):
    """Follows jobs. A *mark* stands for an attempt that is followed; None: it is not.

    No method may raise. `started` and `ended` are called on the worker's event loop. `enter`, `call` and `wait` are
    called where the handler runs.
    """

    def enqueuing(self) -> AbstractContextManager[Enqueuing]:
        """Around an enqueue of one or more jobs, in the caller's context."""

    def started(self, claim: Claim) -> Any:
        """An attempt starts; its mark."""

    def ended(self, mark: Any, move: Transition | None) -> None:
        """A followed attempt has ended with this move; None: it had lost its claim."""

    def enter(self, mark: Any) -> Any:
        """Let the code that follows in this thread or task belong to the attempt; a token for `leave`."""

    def leave(self, token: Any) -> None:
        """End what `enter` began."""

    def to_process(self, mark: Any) -> dict[str, str] | None:
        """The trace context for the process of an isolated attempt."""

    def in_process(self, trace_context: dict[str, str] | None) -> None:
        """Let everything in this process belong to the attempt."""

    def call(self, claim: Claim, kind: CallKind, key: str) -> AbstractContextManager[Calling]:
        """Around a call of a function in a step or a poll."""

    def wait(self, parked: Parked, span: timedelta | None) -> AbstractContextManager[None]:
        """Around a wait of the handler, for this long; a `Park` leaves it if the job is parked."""

    def log_fields(self) -> dict[str, str]:
        """What a log line written here and now should carry."""
