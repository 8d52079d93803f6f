"""The messages between a worker and the process of one attempt: lines of JSON over a socket, never pickle."""

from __future__ import annotations

from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from perdure.domain.gate import BreakerReport, GateRequest
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Outcome
from perdure.errors import DuplicateJobError, StepError, StoreError
from perdure.events import Event
from perdure.kinds.declared import Address
from perdure.worker.attempt.spending import Expense
from perdure.worker.isolation.store_calls import StoreCall

_OUTCOMES: Final = {word.__name__: word for word in get_args(Outcome)}
_READY: Final = "ready"
_STOPPED: Final = "stopped"
_CHECKPOINT: Final = "checkpoint"
_EXPENSE: Final = "expense"
_CALL: Final = "call"
_EVENT: Final = "event"
_GATE: Final = "gate"
_GATE_NEWS: Final = "gate news"
_STORED: Final = "stored"
_REQUESTS: Final = (_CHECKPOINT, _EXPENSE, _CALL, _EVENT, _GATE, _GATE_NEWS, _STORED)
_NULL: Final = b"null"

Message = TypeVar("Message")


class Place(Struct, frozen=True):
    """The start parameters of a process: import path, module of the handlers, socket, and parent.

    `main` says how to import the parent's script again, as multiprocessing describes it; None: not needed.
    """

    path: list[str]
    module: str
    main: dict[str, Any] | None
    socket: int
    parent: int


class Order(Struct, frozen=True):
    """The one attempt that a process runs."""

    address: Address
    claim: Claim
    closing: bool
    keep_lines: int = 0
    age: float = 0.0  # seconds since it was claimed
    trace: dict[str, str] | None = None  # the trace context for the process


class _NamedEvent(Struct, frozen=True):
    """An event by its name."""

    name: str
    facts: Raw


class GateNews(Struct, frozen=True):
    """How a step ended that passed these gates."""

    request: GateRequest
    report: BreakerReport


class Notice(Struct, frozen=True):
    """A message to the handler: the worker is closing, the attempt must stop and why, or the answer to a request.

    `kept` answers the oldest open request, `answer` is the store's answer; `trouble`: the request failed before it
    reached the store. `duplicate` names a unique key and the job that holds it, `step` a step that cannot be stored:
    the handler gets the same error that the store raised.
    """

    closing: bool = False
    stopping: str | None = None
    kept: bool | None = None
    trouble: str | None = None
    duplicate: tuple[str, str] | None = None
    step: tuple[str, str] | None = None
    answer: Raw = Raw(_NULL)


def refusal(error: Exception) -> Notice:
    """The answer to a refused request of a handler."""
    trouble = f"{type(error).__name__}: {error}"
    if isinstance(error, DuplicateJobError):
        return Notice(trouble=trouble, duplicate=(error.key, error.job_id))
    if isinstance(error, StepError):
        return Notice(trouble=trouble, step=(error.step, error.problem))
    return Notice(trouble=trouble)


def raised_by(notice: Notice) -> Exception:
    """The error that the handler gets."""
    if notice.duplicate is not None:
        return DuplicateJobError(*notice.duplicate)
    if notice.step is not None:
        return StepError(*notice.step)
    return StoreError(notice.trouble)


class Report(Struct, frozen=True):
    """A message of a process: it is ready, it asks to store something, it stopped on request, or an outcome."""

    word: str
    body: Raw = Raw(_NULL)

    @property
    def is_ready(self) -> bool:
        """Whether the process waits for its order."""
        return self.word == _READY

    @property
    def is_stopped(self) -> bool:
        """Whether the handler ended because it was told to stop."""
        return self.word == _STOPPED

    @property
    def is_checkpoint(self) -> bool:
        """Whether the handler stores a checkpoint, and waits for the answer."""
        return self.word == _CHECKPOINT

    @property
    def is_request(self) -> bool:
        """Whether the handler requests something, and waits for the answer."""
        return self.word in _REQUESTS

    @property
    def is_expense(self) -> bool:
        """Whether the handler reports spending."""
        return self.word == _EXPENSE

    @property
    def is_event(self) -> bool:
        """Whether it carries an event for listeners."""
        return self.word == _EVENT

    @property
    def is_gate(self) -> bool:
        """Whether a step asks to pass its gates."""
        return self.word == _GATE

    @property
    def is_gate_news(self) -> bool:
        """Whether it reports the end of a step to a breaker."""
        return self.word == _GATE_NEWS

    @property
    def is_stored(self) -> bool:
        """Whether it reports how many jobs the handler has stored by itself."""
        return self.word == _STORED

    def stored(self) -> list[tuple[str, str, int]]:
        """The jobs that the handler has stored: queue, kind and number."""
        return msgspec.json.decode(self.body, type=list[tuple[str, str, int]])

    def gate(self) -> GateRequest:
        """The gate request of a step."""
        return msgspec.json.decode(self.body, type=GateRequest)

    def gate_news(self) -> GateNews:
        """The report for a breaker."""
        return msgspec.json.decode(self.body, type=GateNews)

    def call(self) -> StoreCall:
        """The requested store call."""
        return msgspec.json.decode(self.body, type=StoreCall)

    def event(self) -> Event:
        """The event for listeners."""
        named = msgspec.json.decode(self.body, type=_NamedEvent)
        kinds = {kind.__name__: kind for kind in Event.__subclasses__()}
        return msgspec.json.decode(named.facts, type=kinds[named.name])

    def expense(self) -> Expense:
        """The reported spending."""
        return msgspec.json.decode(self.body, type=Expense)

    def cursor(self) -> str | None:
        """The cursor of the checkpoint."""
        body = bytes(self.body)
        return None if body == _NULL else body.decode()

    def outcome(self) -> Outcome:
        """The outcome of the attempt; raises msgspec.DecodeError or LookupError if it is unreadable."""
        outcome: Outcome = msgspec.json.decode(self.body, type=_OUTCOMES[self.word])
        return outcome


LINE_LIMIT_BYTES: Final = 64 * 1024 * 1024
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


def store_call_of(call: StoreCall) -> Report:
    """The report that asks for a call of the store."""
    return Report(_CALL, Raw(msgspec.json.encode(call)))


def event_of(event: Event) -> Report:
    """The message that carries an event."""
    return Report(_EVENT, Raw(msgspec.json.encode(_NamedEvent(type(event).__name__, Raw(msgspec.json.encode(event))))))


def gate_of(request: GateRequest) -> Report:
    """The report that asks the gates for a step."""
    return Report(_GATE, Raw(msgspec.json.encode(request)))


def gate_news_of(request: GateRequest, report: BreakerReport) -> Report:
    """The message that reports the end of a step to a breaker."""
    return Report(_GATE_NEWS, Raw(msgspec.json.encode(GateNews(request, report))))


def stored_of(jobs: list[tuple[str, str, int]]) -> Report:
    """The report of the jobs that the handler has stored by itself."""
    return Report(_STORED, Raw(msgspec.json.encode(jobs)))


def to_line(message: Struct) -> bytes:
    """One message as a line of JSON."""
    return msgspec.json.encode(message) + b"\n"


def from_line(line: bytes, kind: type[Message]) -> Message:
    """Read a message of this type; raises msgspec.DecodeError if it is another."""
    return msgspec.json.decode(line, type=kind)
