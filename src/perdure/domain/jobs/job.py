"""What a job is: as it is handed in, as it is held by a claim, and as it is shown.

The structs of the hot path are msgspec's: frozen like a dataclass, and ten times cheaper to make. They hold no cycles,
so the garbage collector need not look at them.
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

    RETURN = "return"  # hand back the existing job
    REJECT = "reject"  # raise DuplicateJobError
    REPLACE = "replace"  # give the existing job the new arguments; one that runs already passes the key on


class UniqueKey(Struct, frozen=True, gc=False):
    """A job's claim to be the only one of its key while it is in one of the `states`.

    `dead_for` keeps the key for that long after the job has died, although DEAD is not among its states.
    """

    key: str
    states: frozenset[JobState]
    dead_for: timedelta | None = None
    on_conflict: OnConflict = OnConflict.RETURN


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job on its way into the store. `args` is a JSON document, checked against the handler's signature."""

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
    fair_key: str | None = None  # jobs of one queue and priority that bear different keys take turns
    has_own_id: bool = False  # the caller chose its id, and may have done so before
    plan: tuple[str, ...] = ()  # documents that are kept beside the job and read one by one, when they are needed
    settings: str | None = None  # JSON: what was said of this job alone (see `policy.own_settings`)
    ref: str | None = None  # the name that people outside know it by; no two jobs have the same


class Intake(StrEnum):
    """What became of a job that was handed in."""

    NEW = "new"
    EXISTING = "existing"
    REPLACED = "replaced"


class Receipt(Struct, frozen=True, gc=False):
    """The store's answer to one NewJob: which job now stands for it, and whether it is a new one."""

    job_id: JobId
    intake: Intake


class Claim(Struct, frozen=True, gc=False):
    """One attempt's exclusive hold on a job.

    `token` rises with every claim of the job, and no two claims share one; each write of the attempt is fenced by it.
    `since` is the instant at which this life of the job became due: limits over all attempts count from there.
    `unknown_since` is when a worker first had no handler for the job, if that is why it did not run last time.
    `is_fresh`: it comes straight from where it was enqueued, and has been nowhere else.
    `gates_passed` is the start of the job that passed its gates last, as far as that matters.
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
    cursor: str | None = None  # JSON: how far an earlier attempt came, as it said itself
    parent: JobId | None = None  # the job that spawned this one
    is_parent: bool = False  # it has spawned jobs in an earlier attempt
    is_fresh: bool = False
    gates_passed: str | None = None
    settings: str | None = None  # JSON: what was said of this job alone
    ref: str | None = None

    @property
    def start(self) -> str:
        """Which start of the job this is: the same for all runs of an attempt, and another one in another life."""
        return f"{(self.since - _EPOCH) // _MICROSECOND}/{self.attempt}"

    @property
    def has_passed(self) -> bool:
        """Whether this attempt has passed its gates in an earlier run: it was parked since, or given back."""
        return self.gates_passed is not None and self.gates_passed == self.start

    @property
    def attempt(self) -> int:
        """The number of this attempt, counting from 1: those that failed and those that crashed come before it."""
        return self.failures + self.crashes + 1


class Orphan(Struct, frozen=True):
    """A claim whose worker is dead, with what is known of that worker."""

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
    """All that can be said of one job from outside."""

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
    max_attempts: int | None  # at most, whatever the errors; after a failure: as the rule for that error says
    worker: str | None
    cancel_requested_at: datetime | None
    result: str | None
    warnings: tuple[str, ...]
    unique_key: str | None
    last_error: str | None
    cursor: str | None = None
    parent: JobId | None = None
    awaits: str | None = None  # of a waiting one: event:NAME or family:KEY
    fair_key: str | None = None
    also_awaits: tuple[str, ...] = ()  # what it waits for at the same time
    mark: str | None = None  # a word that the application has put on it
    cancelled_by: str | None = None  # who called it off, or asked a running one to stop
    settings: str | None = None  # JSON: the retry policy and the time limit that were set for this job alone
    ref: str | None = None  # the name that people outside know it by
    word: str | None = None  # what the app calls its state

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, decoded to plain Python: `args` is the JSON text that is stored."""
        decoded: dict[str, Any] = unpacked(self.args)
        return decoded

    @property
    def value(self) -> Any:
        """The result, decoded to plain Python: `result` is the JSON text that is stored. None: there is none."""
        return unpacked(self.result)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON's own types: times as ISO 8601 text; args, meta, result, cursor and settings decoded."""
        document: dict[str, Any] = plain(self)
        for field in _DOCUMENTS:
            document[field] = unpacked(document[field])
        return document
