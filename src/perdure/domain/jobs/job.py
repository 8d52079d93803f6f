"""A job: as enqueued, as held by a claim, and as shown.

The structs of the hot path are msgspec's: frozen like a dataclass, and ten times cheaper to make. They hold no cycles,
so the garbage collector skips them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.states import JobState
from perdure.domain.plain_records import plain, unpacked

DEFAULT_QUEUE: Final = "default"
DEFAULT_PRIORITY: Final = 5
PRIORITIES: Final = range(10)  # 0 runs first
DEFAULT_CRASH_LIMIT: Final = 3
_DOCUMENTS: Final = ("args", "meta", "result", "cursor", "settings")  # fields of a view that hold JSON text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class OnConflict(StrEnum):
    """What enqueue does when another job holds the unique key."""

    RETURN = "return"  # return the existing job
    REJECT = "reject"  # raise DuplicateJobError
    REPLACE = "replace"  # replace the arguments of the existing job; a running one passes the key on


class UniqueKey(Struct, frozen=True, gc=False):
    """A job's right to be the only one with its key while it is in one of the `states`.

    `dead_for` keeps the key for that long after the job has died, although DEAD is not among its states.
    """

    key: str
    states: frozenset[JobState]
    dead_for: timedelta | None = None
    on_conflict: OnConflict = OnConflict.RETURN


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job to be stored. `args` is a JSON document, checked against the handler's signature."""

    id: JobId
    kind: str
    args: str
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delay: timedelta | None = None
    run_at: datetime | None = None
    unique: UniqueKey | None = None
    max_attempts: int | None = None
    crash_limit: int = DEFAULT_CRASH_LIMIT
    tags: tuple[str, ...] = ()
    meta: str | None = None
    fair_key: str | None = None  # jobs of one queue and priority with different keys take turns
    has_own_id: bool = False  # the caller chose its id, and may have enqueued it before
    plan: tuple[str, ...] = ()  # documents that are stored beside the job and read one by one when needed
    settings: str | None = None  # JSON: settings of this job alone (see `policy.own_settings`)
    ref: str | None = None  # its external name; unique among all jobs


class Intake(StrEnum):
    """The outcome of an enqueue."""

    NEW = "new"
    EXISTING = "existing"
    REPLACED = "replaced"


class Receipt(Struct, frozen=True, gc=False):
    """The store's answer to one NewJob: the job that represents it, and whether it is new."""

    job_id: JobId
    intake: Intake


class Claim(Struct, frozen=True, gc=False):
    """One attempt's exclusive hold on a job.

    `token` rises with every claim of the job, and no two claims share one; it fences every write of the attempt.
    `since` is when this life of the job became due: limits over all attempts count from there. `unknown_since` is when
    a worker first had no handler for the job, if that is why it did not run last time. `is_fresh`: the job was never
    claimed or parked before. For others `due_at` is when they came due again: at their time, or when the event came,
    the pause ended or an operator asked; None if unknown, as after a crash. `gates_passed` is the start of the job that
    last passed its gates, if that matters. `gates` is the record of the gates that it has met, as the store keeps it
    (see `policy.limits.gate_record`).
    """

    job_id: JobId
    token: int
    kind: str
    queue: str
    args: str
    failures: int
    crashes: int
    crash_limit: int
    since: datetime
    claimed_at: datetime
    unique: UniqueKey | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    unknown_since: datetime | None = None
    cursor: str | None = None  # JSON: the checkpoint that an earlier attempt saved
    parent: JobId | None = None  # the job that spawned this one
    is_parent: bool = False  # an earlier attempt has spawned jobs
    is_fresh: bool = False
    gates_passed: str | None = None
    settings: str | None = None  # JSON: settings of this job alone
    ref: str | None = None
    due_at: datetime | None = None
    gates: str | None = None

    @property
    def start(self) -> str:
        """The number of this start: the same for all runs of an attempt, and different after a requeue."""
        return f"{(self.since - _EPOCH) // _MICROSECOND}/{self.attempt}"

    @property
    def waited(self) -> timedelta | None:
        """From when it was due to its claim; None if that is not known."""
        due_at = self.since if self.is_fresh else self.due_at
        return None if due_at is None else self.claimed_at - due_at

    @property
    def has_passed(self) -> bool:
        """Whether an earlier run of this attempt has passed its gates: it was parked since, or released."""
        return self.gates_passed is not None and self.gates_passed == self.start

    @property
    def attempt(self) -> int:
        """The number of this attempt, starting at 1: earlier failures and crashes count."""
        return self.failures + self.crashes + 1


class Orphan(Struct, frozen=True):
    """A claim whose worker is dead, with the facts known about that worker."""

    claim: Claim
    worker_id: WorkerId
    worker: str
    silent_for: timedelta


class Attempt(Struct, frozen=True, kw_only=True):
    """The record of one attempt that did not succeed."""

    job_id: JobId
    token: int
    number: int
    reason: str
    worker: str
    started_at: datetime
    finished_at: datetime
    error_type: str
    message: str
    traceback: str | None
    next_at: datetime | None


class JobView(Struct, frozen=True, kw_only=True):
    """All public facts about one job."""

    id: JobId
    kind: str
    queue: str
    priority: int
    state: JobState
    reason: str
    args: str
    tags: tuple[str, ...]
    meta: str | None
    created_at: datetime
    due_at: datetime | None  # when a parked job comes back by itself; None: never, or it is not parked
    since: datetime
    started_at: datetime | None
    finished_at: datetime | None
    failures: int
    crashes: int
    max_attempts: int | None  # the maximum for any error; after a failure: by the rule for that error
    worker: str | None
    cancel_requested_at: datetime | None
    result: str | None
    warnings: tuple[str, ...]
    unique_key: str | None
    last_error: str | None
    cursor: str | None = None
    parent: JobId | None = None
    awaits: str | None = None  # of a waiting job: event:NAME or family:KEY
    fair_key: str | None = None
    also_awaits: tuple[str, ...] = ()  # what it waits for at the same time
    mark: str | None = None  # a mark that the application has set
    cancelled_by: str | None = None  # who cancelled it, or asked a running one to stop
    settings: str | None = None  # JSON: the retry policy and the time limit of this job alone
    ref: str | None = None  # its external name
    word: str | None = None  # the app's word for its state
    fingerprint: str | None = None  # of its last error: which group of failures it belongs to

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, decoded to plain Python: `args` is the stored JSON text."""
        decoded: dict[str, Any] = unpacked(self.args)
        return decoded

    @property
    def value(self) -> Any:
        """The result, decoded to plain Python: `result` is the stored JSON text. None: there is none."""
        return unpacked(self.result)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON types: times as ISO 8601 text; args, meta, result, cursor and settings decoded."""
        document: dict[str, Any] = plain(self)
        for field in _DOCUMENTS:
            document[field] = unpacked(document[field])
        return document
