"""What a worker and the process of one attempt say to each other: lines of JSON over a socket, never pickle."""

from __future__ import annotations

from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from perdure.domain.job import Claim
from perdure.domain.outcome import Outcome
from perdure.kinds.declared import Address
from perdure.worker.spending import Expense

_OUTCOMES: Final = {word.__name__: word for word in get_args(Outcome)}
_READY: Final = "ready"
_STOPPED: Final = "stopped"
_CHECKPOINT: Final = "checkpoint"
_EXPENSE: Final = "expense"
_NULL: Final = b"null"

Message = TypeVar("Message")


class Place(Struct, frozen=True):
    """How a process finds its way: import path, module of the handlers, socket, and parent.

    `main` tells how the parent's script is imported again, in the words of multiprocessing; None: it is not needed.
    """

    path: list[str]
    module: str
    main: dict[str, Any] | None
    socket: int
    parent: int


class Order(Struct, frozen=True):
    """The one attempt that a process is there for."""

    address: Address
    claim: Claim
    closing: bool


class Notice(Struct, frozen=True):
    """News for a handler: the worker is closing, or the attempt must stop, and why; or the answer to a request.

    `kept` answers the oldest request that has no answer yet; with `trouble` it could not even be tried.
    """

    closing: bool = False
    stopping: str | None = None
    kept: bool | None = None
    trouble: str | None = None


class Report(Struct, frozen=True):
    """What a process says: that it is ready, what it wants to be kept, that it stopped when told to, or an outcome."""

    word: str
    body: Raw = Raw(_NULL)

    @property
    def is_ready(self) -> bool:
        """Whether the process waits for its order."""
        return self.word == _READY

    @property
    def is_stopped(self) -> bool:
        """Whether the handler gave up because it was told to stop."""
        return self.word == _STOPPED

    @property
    def is_checkpoint(self) -> bool:
        """Whether the handler wants to keep how far it has come, and waits for an answer."""
        return self.word == _CHECKPOINT

    @property
    def is_request(self) -> bool:
        """Whether the handler wants something to be kept, a checkpoint or an expense, and waits for an answer."""
        return self.word in (_CHECKPOINT, _EXPENSE)

    def expense(self) -> Expense:
        """What was spent."""
        return msgspec.json.decode(self.body, type=Expense)

    def cursor(self) -> str | None:
        """What a checkpoint says."""
        body = bytes(self.body)
        return None if body == _NULL else body.decode()

    def outcome(self) -> Outcome:
        """What became of the attempt; raises msgspec.DecodeError or LookupError if that cannot be read."""
        outcome: Outcome = msgspec.json.decode(self.body, type=_OUTCOMES[self.word])
        return outcome


READY: Final = Report(_READY)
STOPPED: Final = Report(_STOPPED)


def report_of(outcome: Outcome) -> Report:
    """The report that carries this outcome."""
    return Report(type(outcome).__name__, Raw(msgspec.json.encode(outcome)))


def checkpoint_of(cursor: str | None) -> Report:
    """The report that asks for a checkpoint."""
    return Report(_CHECKPOINT, Raw(_NULL if cursor is None else cursor.encode()))


def expense_of(expense: Expense) -> Report:
    """The report that asks for an expense to be recorded."""
    return Report(_EXPENSE, Raw(msgspec.json.encode(expense)))


def to_line(message: Struct) -> bytes:
    """One message as it travels."""
    return msgspec.json.encode(message) + b"\n"


def from_line(line: bytes, kind: type[Message]) -> Message:
    """Read a message; raises msgspec.DecodeError if it is none of this kind."""
    return msgspec.json.decode(line, type=kind)
