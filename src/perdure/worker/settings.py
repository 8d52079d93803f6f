"""The settings of a worker; every value is checked before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from perdure.domain.duration import Duration, format_duration, read_spans
from perdure.domain.jobs.job import DEFAULT_QUEUE
from perdure.domain.jobs.log_lines import LINES_KEPT
from perdure.domain.operate.audit import Audited
from perdure.errors import SettingsError
from perdure.kinds.kind import Registry
from perdure.policy.decide import MissingHandler
from perdure.policy.opening import Opening, Polling
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.policy.schedules.backup_plan import BackupPlan
from perdure.storage.records import Keep

Word = TypeVar("Word", bound=StrEnum)

_NUMBERS: Final = ("concurrency", "threads", "isolated", "claim_batch", "ack_batch", "unacknowledged", "outage_errors")
_NAME_LIMIT_CHARACTERS: Final = 100
_OPTIONAL_NUMBERS: Final = ("recycle_after_jobs", "recycle_above_mb")
_SPANS: Final = (
    "heartbeat",
    "lease",
    "sweep",
    "poll",
    "grace",
    "stop_timeout",
    "unknown_kind_for",
    "slow_start",
    "ageing",
    "blocked_after",
    "slow_store_after",
    "outage_backoff",
    "statistics",
)
_NEVER_ZERO: Final = ("heartbeat", "lease", "sweep", "poll", "blocked_after", "slow_store_after", "outage_backoff")


class Queue(Struct, frozen=True):
    """How a worker serves one queue: its share of free capacity, and how many of its jobs may run here at once.

    `slow_start`: its running jobs ramp up from 1 over this time after the worker opens. `opening` says how jobs of dead
    workers come back to it. None: use the worker's settings. `reserved`: its `concurrency` slots are its own, beside
    those of the worker, so that its jobs start even while all other slots are taken.
    """

    name: str
    weight: int = 1
    concurrency: int | None = None
    slow_start: timedelta | None = None
    opening: Opening | None = None
    reserved: bool = False

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            name: str,
            weight: int = ...,
            concurrency: int | None = ...,
            slow_start: Duration | None = ...,
            opening: Opening | None = ...,
            reserved: bool = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.slow_start is not None:
            read_spans(f"queue {self.name}", self, ("slow_start",))


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """A worker's settings; the defaults suit most.

    Times accept any duration ("30s"); queues are given by name, with weight and limit as in `mail:3` or `reports@2`.
    """

    queues: tuple[Queue, ...] = ()  # (): every queue that the app's kinds use
    name: str | None = None
    concurrency: int = 100
    threads: int = 16
    isolated: int = 16  # isolated attempts at once
    claim_batch: int = 500
    ack_batch: int = 1_000
    unacknowledged: int = 10_000  # above this many finished but unrecorded jobs, claiming stops
    heartbeat: timedelta = timedelta(seconds=10)
    lease: timedelta = timedelta(seconds=30)
    sweep: timedelta = timedelta(seconds=5)
    poll: timedelta = timedelta(seconds=1)
    polling: Polling = Polling.FIXED
    ageing: timedelta = timedelta(minutes=10)  # a waiting job gains a priority level per interval; 0: never
    slow_start: timedelta = timedelta(0)  # running jobs ramp up from 1 to `concurrency` over this time
    opening: Opening | None = None  # how jobs of dead workers come back; None: at once
    grace: timedelta = timedelta(seconds=5)  # between telling a handler to stop and abandoning its attempt
    stop_timeout: timedelta = timedelta(seconds=20)
    missing_handler: MissingHandler = MissingHandler.DEFER
    unknown_kind_for: timedelta = timedelta(days=1)
    keep: Keep = Keep()
    keep_lines: int = LINES_KEPT  # log lines kept with each job, the newest; 0: none
    backup: BackupPlan | None = None  # copies of an SQLite database; None: no copies
    recycle_after_jobs: int | None = None
    recycle_above_mb: int | None = None
    blocked_after: timedelta = timedelta(seconds=2)  # a blocked event loop is reported
    slow_store_after: timedelta = timedelta(seconds=10)  # a slower database call is reported
    statistics: timedelta = timedelta(seconds=3)  # how often counts of attempts are written; 0: nothing is counted
    audit: frozenset[Audited] = frozenset()  # what the engine itself writes to the audit trail: retry, rescue, …
    outage_errors: int = DEFAULT_OUTAGE.errors  # consecutive database errors before a background task backs off
    outage_backoff: timedelta = DEFAULT_OUTAGE.backoff  # its longest wait; it starts at 1 s and doubles

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            *,
            queues: str | Iterable[Queue | str] = ...,
            name: str | None = ...,
            concurrency: int = ...,
            threads: int = ...,
            isolated: int = ...,
            claim_batch: int = ...,
            ack_batch: int = ...,
            unacknowledged: int = ...,
            heartbeat: Duration = ...,
            lease: Duration = ...,
            sweep: Duration = ...,
            poll: Duration = ...,
            polling: Polling | str = ...,
            ageing: Duration = ...,
            slow_start: Duration = ...,
            opening: Opening | None = ...,
            grace: Duration = ...,
            stop_timeout: Duration = ...,
            missing_handler: MissingHandler | str = ...,
            unknown_kind_for: Duration = ...,
            keep: Keep = ...,
            keep_lines: int = ...,
            backup: BackupPlan | None = ...,
            recycle_after_jobs: int | None = ...,
            recycle_above_mb: int | None = ...,
            blocked_after: Duration = ...,
            slow_store_after: Duration = ...,
            statistics: Duration = ...,
            audit: str | Iterable[str] = ...,
            outage_errors: int = ...,
            outage_backoff: Duration = ...,
        ) -> None: ...

    @property
    def recycles(self) -> bool:
        """Whether the process is replaced by a new one from time to time, which needs a supervisor."""
        return self.recycle_after_jobs is not None or self.recycle_above_mb is not None

    @property
    def outage(self) -> OutageLimits:
        """How background tasks retry while the database fails."""
        return OutageLimits(self.outage_errors, self.outage_backoff)

    def __post_init__(self) -> None:
        force_setattr(self, "queues", _read_queues(self.queues))
        force_setattr(self, "missing_handler", _read_word("missing_handler", MissingHandler, self.missing_handler))
        force_setattr(self, "polling", _read_word("polling", Polling, self.polling))
        force_setattr(self, "audit", _read_audit(self.audit))
        read_spans("worker", self, _SPANS)
        for field in _NUMBERS:
            _check_number(f"worker.{field}", getattr(self, field))
        for field in _OPTIONAL_NUMBERS:
            if getattr(self, field) is not None:
                _check_number(f"worker.{field}", getattr(self, field))
        if self.keep_lines != 0:
            _check_number("worker.keep_lines", self.keep_lines)
        _check_type("worker.name", self.name, (str, type(None)), "text")
        if self.name is not None:
            _check_name("worker.name", self.name)
        _check_type("worker.opening", self.opening, (Opening, type(None)), 'an Opening, as in Opening("5m")')
        _check_type("worker.backup", self.backup, (BackupPlan, type(None)), 'a BackupPlan, as in BackupPlan("backups")')
        _check_type("worker.keep", self.keep, Keep, 'a Keep, as in Keep(succeeded="7d")')
        for field in _NEVER_ZERO:
            if not getattr(self, field):
                raise SettingsError(f"worker.{field}", "must be longer than 0")
        if self.lease < 2 * self.heartbeat:
            heartbeat, lease = format_duration(self.heartbeat), format_duration(self.lease)
            raise SettingsError("worker.lease", f"must be at least twice the heartbeat ({heartbeat}), got {lease}")


def serving(settings: WorkerSettings, kinds: Registry, declared: Iterable[str] | None = None) -> WorkerSettings:
    """These settings; if they name no queue, with `declared`, or else with every queue that these kinds use."""
    if settings.queues:
        return settings
    names = {DEFAULT_QUEUE, *(kind.queue for kind in kinds.values())} if declared is None else set(declared)
    return replace(settings, queues=tuple(Queue(name) for name in sorted(names)))


def beside(settings: WorkerSettings, queues: Iterable[Queue]) -> WorkerSettings:
    """These settings with more queues to serve, but for those that they name already."""
    named = {queue.name for queue in settings.queues}
    more = tuple(queue for queue in queues if queue.name not in named)
    return replace(settings, queues=(*settings.queues, *more)) if more else settings


def parse_queues(text: str) -> tuple[Queue, ...]:
    """Parse `mail:3,reports@2` as queues: weight after a colon, concurrency after an at sign."""
    queues = []
    for piece in (part.strip() for part in text.split(",")):
        head, _, concurrency = piece.partition("@")
        name, _, weight = head.partition(":")
        if not name:
            raise SettingsError("queues", f"has an empty name in {text!r}; write for example mail:3,reports@2")
        try:
            queue = Queue(name, int(weight or 1), int(concurrency) if concurrency else None)
        except ValueError:
            raise SettingsError("queues", f"has an invalid number in {piece!r}") from None
        if queue.weight < 1 or (queue.concurrency is not None and queue.concurrency < 1):
            raise SettingsError("queues", f"has a number below 1 in {piece!r}; write for example mail:3,reports@2")
        queues.append(queue)
    return tuple(queues)


def _read_queues(given: object) -> tuple[Queue, ...]:
    if given == ():
        return ()
    pieces = [given] if isinstance(given, str | Queue) else list(given) if isinstance(given, Iterable) else []
    queues: list[Queue] = []
    for piece in pieces:
        _check_type("worker.queues", piece, (str, Queue), "queues, or their names")
        queues += [piece] if isinstance(piece, Queue) else parse_queues(str(piece))
    if not queues:
        raise SettingsError("worker.queues", f"must name at least one queue, got {given!r}")
    names = [queue.name for queue in queues]
    if len(set(names)) < len(names):
        raise SettingsError("worker.queues", f"names a queue twice: {', '.join(names)}")
    for queue in queues:
        _check_type("worker.queues", queue.name, str, "queues, or their names")
        _check_name("worker.queues", queue.name)
        _check_number(f"weight of queue {queue.name}", queue.weight)
        _check_type(f"opening of queue {queue.name}", queue.opening, (Opening, type(None)), "an Opening")
        if queue.concurrency is not None:
            _check_number(f"concurrency of queue {queue.name}", queue.concurrency)
        _check_type(f"reserved of queue {queue.name}", queue.reserved, bool, "True or False")
        if queue.reserved and queue.concurrency is None:
            raise SettingsError(f"reserved of queue {queue.name}", "needs its concurrency: how many slots are its own")
    return tuple(queues)


def _read_audit(given: object) -> frozenset[Audited]:
    words = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    audited = set[Audited]()
    for word in words:
        if not isinstance(word, str) or word not in frozenset(Audited):
            raise SettingsError("worker.audit", f"must be among {', '.join(Audited)}, got {word!r}")
        audited.add(Audited(word))
    return frozenset(audited)


def _read_word(field: str, words: type[Word], given: str) -> Word:
    try:
        return words(given)
    except ValueError:
        raise SettingsError(f"worker.{field}", f"must be one of {', '.join(words)}, got {given!r}") from None


def _check_number(field: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise SettingsError(field, f"must be a whole number, got {number!r}")
    if number < 1:
        raise SettingsError(field, f"must be at least 1, got {number}")


def _check_name(field: str, name: str) -> None:
    if not name.strip() or len(name) > _NAME_LIMIT_CHARACTERS or not name.isprintable():
        shown = name[:_NAME_LIMIT_CHARACTERS]
        problem = f"must be 1 to {_NAME_LIMIT_CHARACTERS} printable characters, got {len(name)}: {shown!r}"
        raise SettingsError(field, problem)


def _check_type(field: str, value: object, wanted: type | tuple[type, ...], words: str) -> None:
    if not isinstance(value, wanted):
        raise SettingsError(field, f"must be {words}, got {value!r}")
