"""The values that cross the port besides the domain's own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, read_spans
from perdure.domain.flows.flow import StepWrite
from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.jobs.job import Claim, JobView
from perdure.domain.jobs.log_lines import LINES_KEPT, NewLine
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import Audited
from perdure.domain.operate.condition import CONDITIONS_LIMIT, Condition
from perdure.errors import ArgumentError
from perdure.kinds.options import checked_instant
from perdure.storage.checking import check_mark, check_number, check_text, check_whole, echo, read_ids, read_states

_TEXTS: Final = ("kind", "queue", "tag", "error", "ref", "fingerprint")
_ADVICE: Final = "; pass the `next` of the page before this one"
_MOMENTS: Final = ("created_before", "created_after", "finished_before", "finished_after")


class Wanted(Struct, frozen=True):
    """How many jobs a worker can claim from one queue now; `level`: of this priority alone."""

    queue: str
    limit: int
    level: int | None = None


class Front(Struct, frozen=True):
    """One of the next jobs in one priority of a queue: since when it has been due."""

    queue: str
    priority: int
    since: datetime


class Acknowledged(Struct, frozen=True):
    """The outcome of a batch of transitions: how many were written, and which claims were already lost.

    `links` are the next links of chains that were stored with it, each by its queue and kind.
    """

    applied: int
    stale: tuple[Claim, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Alongside(Struct, frozen=True):
    """What is written with the acknowledgement in a handler's transaction: its later steps and log lines.

    `audit` lists the actions that go to the audit trail.
    """

    steps: tuple[StepWrite, ...] = ()
    lines: tuple[NewLine, ...] = ()
    keep_lines: int = LINES_KEPT
    audit: frozenset[Audited] = frozenset()


ALONE: Final = Alongside()


class Promoted(Struct, frozen=True):
    """Parked jobs that became ready, counted by queue, and when the next one is due.

    `next_in` counts from now by the store's clock, which need not be that of this machine.
    """

    by_queue: dict[str, int]
    next_due: datetime | None = None
    next_in: timedelta | None = None

    @property
    def total(self) -> int:
        """How many jobs became ready."""
        return sum(self.by_queue.values())


class Overdue(Struct, frozen=True):
    """A parked job that is due and not ready."""

    job_id: JobId
    queue: str
    due_at: datetime


class CancelRequest(Struct, frozen=True):
    """A request to cancel a running job, perhaps with a reason."""

    job_id: JobId
    token: int
    why: str | None = None


class Keep(Struct, frozen=True):
    """How long finished jobs are kept, by final state, entries of the audit trail, and statistics; None: for ever.

    `statistics_by_minute` also holds for those by quarter of an hour.
    """

    succeeded: timedelta | None = timedelta(days=7)
    cancelled: timedelta | None = timedelta(days=30)
    dead: timedelta | None = None
    audit_trail: timedelta | None = None
    statistics_by_minute: timedelta | None = timedelta(days=2)
    statistics_by_hour: timedelta | None = timedelta(days=90)

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            succeeded: Duration | None = ...,
            cancelled: Duration | None = ...,
            dead: Duration | None = ...,
            audit_trail: Duration | None = ...,
            statistics_by_minute: Duration | None = ...,
            statistics_by_hour: Duration | None = ...,
        ) -> None: ...

    @property
    def by_state(self) -> list[tuple[JobState, timedelta]]:
        """How long, by final state, without those that are kept for ever."""
        spans = (
            (JobState.SUCCEEDED, self.succeeded),
            (JobState.CANCELLED, self.cancelled),
            (JobState.DEAD, self.dead),
        )
        return [(state, span) for state, span in spans if span is not None]

    def __post_init__(self) -> None:
        read_spans("keep", self, [field for field in self.__struct_fields__ if getattr(self, field) is not None])


class JobFilter(Struct, frozen=True, kw_only=True):
    """A filter for jobs; all given conditions must match. An empty filter means all jobs.

    States may be given as words: `states="dead"`, `states=("dead", "cancelled")`. Times need a time zone. `mark` means
    jobs with this mark, `marked` those with any (True) or none (False). `fingerprint` means jobs whose last error
    belongs to this group of failures; `where` are conditions on what jobs carry.
    """

    ids: tuple[JobId, ...] | None = None
    states: frozenset[JobState] | None = None
    kind: str | None = None
    queue: str | None = None
    tag: str | None = None
    created_before: datetime | None = None
    created_after: datetime | None = None
    finished_before: datetime | None = None
    error: str | None = None  # a part of the last error's type or message, ignoring case
    finished_after: datetime | None = None
    mark: str | None = None
    marked: bool | None = None
    ref: str | None = None  # the exact ref
    fingerprint: str | None = None
    where: tuple[Condition, ...] = ()

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            *,
            ids: str | Iterable[str] | None = ...,
            states: str | Iterable[str] | None = ...,
            kind: str | None = ...,
            queue: str | None = ...,
            tag: str | None = ...,
            created_before: datetime | None = ...,
            created_after: datetime | None = ...,
            finished_before: datetime | None = ...,
            error: str | None = ...,
            finished_after: datetime | None = ...,
            mark: str | None = ...,
            marked: bool | None = ...,
            ref: str | None = ...,
            fingerprint: str | None = ...,
            where: Condition | Iterable[Condition] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.ids is not None:
            force_setattr(self, "ids", read_ids(self.ids))
        if self.states is not None:
            force_setattr(self, "states", read_states(self.states))
        for field in _TEXTS:
            if (text := getattr(self, field)) is not None:
                check_text(field, text)
        for field in _MOMENTS:
            if (moment := getattr(self, field)) is not None:
                checked_instant(field, moment)
        self._check_span("created_after", "created_before")
        self._check_span("finished_after", "finished_before")
        self._check_marks()
        if self.where != ():
            force_setattr(self, "where", _read_where(self.where))

    def _check_span(self, after: str, before: str) -> None:
        first, last = getattr(self, after), getattr(self, before)
        if first is not None and last is not None and first >= last:
            times = f"{first.isoformat()} and {last.isoformat()}"
            raise ArgumentError(after, f"must be earlier than {before}, or no job can match; got {times}")

    def _check_marks(self) -> None:
        if self.mark is not None:
            check_mark(self.mark)
        if self.marked is not None and not isinstance(self.marked, bool):
            raise ArgumentError("marked", f"must be True, False or None, got {echo(self.marked)}")
        if self.mark is not None and self.marked is False:
            raise ArgumentError("mark", "and marked=False are both given: choose one")

    @property
    def must_look(self) -> bool:
        """Whether jobs must be checked one by one, because no index finds those that match."""
        if self.ids is not None or self.ref is not None:
            return False
        asked = (self.kind, self.queue, self.tag, self.created_before, self.created_after, self.error, self.marked)
        others = (self.mark, self.fingerprint)
        is_rare = self.states is not None and JobState.SUCCEEDED in self.states and len(self.states) < len(JobState)
        return is_rare or self.has_window or bool(self.where) or any(each is not None for each in (*asked, *others))

    @property
    def has_window(self) -> bool:
        """Whether it filters by finishing time."""
        return self.finished_after is not None or self.finished_before is not None


def _read_where(value: object) -> tuple[Condition, ...]:
    conditions = [value] if isinstance(value, Condition) else list(value) if isinstance(value, Iterable) else [value]
    for condition in conditions:
        if not isinstance(condition, Condition):
            wanted = 'Condition("args", ("user", "id"), "=", 42)'
            raise ArgumentError("where", f"must be conditions, as in {wanted}, got {echo(condition)}")
    if len(conditions) > CONDITIONS_LIMIT:
        raise ArgumentError("where", f"may hold at most {CONDITIONS_LIMIT} conditions, got {len(conditions)}")
    return tuple(conditions)


class Page(Struct, frozen=True):
    """A piece of a long list, newest first: at most `limit` rows.

    `before` continues after the job of this id, in a list of any length. `number` counts pages of `limit` rows from 1,
    up to the 10,000th row: a page by number is found by counting all rows before it.
    """

    limit: int = 50
    before: JobId | None = None
    number: int | None = None

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(self, limit: int = ..., before: str | None = ..., number: int | None = ...) -> None: ...

    def __post_init__(self) -> None:
        check_whole("limit", self.limit, 1)
        if self.before is not None:
            force_setattr(self, "before", as_job_id(self.before, field="before", advice=_ADVICE))
        if self.number is not None:
            check_number(self.number, self.limit, is_alone=self.before is None)

    @property
    def skipped(self) -> int:
        """How many rows come before a page given by its number."""
        return 0 if self.number is None else (self.number - 1) * self.limit


class Reach(Struct, frozen=True):
    """How many jobs a list may check one by one, and for how long."""

    rows: int
    time: timedelta


class Searched(Struct, frozen=True):
    """A piece of a list. `behind` and `back_to`: the search ended early, behind this job, made at this time."""

    jobs: list[JobView]
    behind: JobId | None = None
    back_to: datetime | None = None


class Count(Struct, frozen=True):
    """How many jobs are in one state of one queue. `capped`: a lower bound."""

    queue: str
    state: JobState
    jobs: int
    capped: bool = False


class Tally(Struct, frozen=True, kw_only=True):
    """How many jobs match a filter, in all or in one group. `capped`: a lower bound.

    `kind`, `state` and `queue` name the group, as requested.
    """

    jobs: int
    capped: bool = False
    kind: str | None = None
    state: JobState | None = None
    queue: str | None = None
