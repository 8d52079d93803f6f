"""Every error that perdure raises, in one tree.

PerdureError
├── ArgumentError          a value handed in by the caller is wrong; `field` names it
│   ├── PayloadError       the arguments of a job do not fit its handler, cannot be encoded, or are too large
│   │   └── StepError      a step cannot be kept as it is, or what is kept no longer fits the handler; never retried
│   └── SettingsError      a setting is wrong or contradicts another
├── DuplicateJobError      unique key held, and the caller asked for on_conflict="reject"
│   └── DuplicateChildError  the same of a child, which `family` and `number` name; none of its family was made
├── NotFoundError          no such job, kind or queue
├── ConflictError          the job is in a state in which this cannot be done
├── JobNotSuccessful       a job whose result was awaited died or was cancelled
├── ChildrenFailed         too many children of a job died or were cancelled; `failed` says which
│   └── ChildrenTimeout    they were not there in time; `unfinished` says which
├── EventTimeout           an event that a job waited for did not come in time; never retried unless it is caught
├── BudgetExceeded         a budget that lets nobody wait is spent; never retried unless it is caught
├── PollTimeout            what a job polled for was not ready in time
├── StillRunning           what was to be over in time is not; `names`, `jobs` and `loops` say what
├── LifespanError          what the application opens for its workers could not be opened; `name` says which
├── ProcessDied            the process of an isolated attempt ended before its handler had returned
└── StoreError             the database failed us
    ├── StoreUnavailable   it cannot be reached now; trying again later may work
    │   └── StoreLocked    another process holds the lock of an SQLite file for too long; nothing was stored
    ├── StoreRefused       it is reachable and refuses: read-only, full, no rights, unsafe file system
    ├── SchemaError        its schema is missing, damaged, or too new for this code
    └── ForkError          it was opened before a fork, and used after it
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

_TOLD = 3  # children by name in one message
_OF_ITS_OWN = "its own children failed: "


class PerdureError(Exception):
    """The root of everything raised by perdure."""


class ArgumentError(PerdureError, ValueError):
    """A value handed in by the caller is wrong; `field` names it and the message says what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field


class PayloadError(ArgumentError):
    """The arguments of a job do not fit its handler, cannot be encoded, or are too large."""


class StepError(PayloadError):
    """A step cannot be kept as it is, or what is kept no longer fits the handler: trying again cannot mend it."""

    def __init__(self, step: str, problem: str) -> None:
        super().__init__(f"step {step}", problem)
        self.step = step
        self.problem = problem


class SettingsError(ArgumentError):
    """A setting is wrong by itself or contradicts another."""


class DuplicateJobError(PerdureError):
    """Another job holds the unique key, and the caller asked to be refused."""

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(f"job {job_id} already holds the unique key {key!r}")
        self.key = key
        self.job_id = job_id


class DuplicateChildError(DuplicateJobError):
    """The unique key of a child is held by another job, and the call asked to be refused: no child was made."""

    def __init__(self, family: str, number: int, kind: str, key: str, job_id: str) -> None:
        super().__init__(key, job_id)
        self.args = (f"child {number} of {family} ({kind}) cannot be made: {self}",)
        self.family = family
        self.number = number
        self.kind = kind


class NotFoundError(PerdureError, LookupError):
    """There is no such job, kind or queue."""


class JobNotSuccessful(PerdureError):  # noqa: N818 - reads as what is the matter with the job
    """A job whose result was awaited died or was cancelled."""

    def __init__(self, job_id: str, state: str, why: str) -> None:
        super().__init__(f"job {job_id} is {state}: {why}")
        self.job_id = job_id
        self.state = state
        self.why = why


class FailedChild(NamedTuple):
    """A child that died or was cancelled. `number` is its place among the calls, counting from 0."""

    number: int
    job_id: str
    state: str
    error: str | None


class ChildrenFailed(PerdureError):  # noqa: N818 - reads as what is the matter
    """Too many children of a job died or were cancelled.

    `results` are those of the children in the order of the calls, None where there is none.
    """

    def __init__(self, family: str, failed: tuple[FailedChild, ...], results: tuple[Any, ...]) -> None:
        super().__init__(f"{len(failed)} of {len(results)} children of {family} failed{_told(failed)}")
        self.family = family
        self.failed = failed
        self.results = results


class ChildrenTimeout(ChildrenFailed):
    """The children of a job were not there in time. `unfinished` are the numbers of those that are not final."""

    def __init__(
        self,
        family: str,
        failed: tuple[FailedChild, ...],
        results: tuple[Any, ...],
        unfinished: tuple[int, ...],
        within: float,
    ) -> None:
        super().__init__(family, failed, results)
        late = f"{len(unfinished)} of {len(results)} children of {family} are not finished after {within:g} s"
        self.args = (f"{late}{f', {len(failed)} failed' if failed else ''}{_told(failed)}",)
        self.unfinished = unfinished
        self.within = within


def _told(failed: tuple[FailedChild, ...]) -> str:
    told = "; ".join(
        f"job {c.job_id} is {c.state}{f': {_at_heart(c.error)}' if c.error else ''}" for c in failed[:_TOLD]
    )
    more = f"; and {len(failed) - _TOLD} more" if len(failed) > _TOLD else ""
    return f": {told}{more}" if told else ""


def _at_heart(error: str) -> str:
    """The error of a child; if it is that of its own children, the one at the end of the line, however long that is."""
    if not error.startswith("perdure.Children"):
        return error
    before, found, heart = error.partition(_OF_ITS_OWN)
    return f"{_OF_ITS_OWN}{heart if found else before.partition(' failed: ')[2] or before}"


class ConflictError(PerdureError):
    """The job is in a state in which this cannot be done."""


class EventTimeout(PerdureError):  # noqa: N818 - reads as what happened
    """An event that a job waited for did not come in time. That is kept: it is raised again in every later attempt.

    `question`: it was somebody's answer to this.
    """

    def __init__(self, event: str, waited: str, question: str | None = None) -> None:
        told = f"event {event!r} did not come" if question is None else f"nobody has answered {question!r}"
        super().__init__(f"{told} within {waited}")
        self.event = event


class BudgetExceeded(PerdureError):  # noqa: N818 - reads as what happened
    """A budget with when_spent="fail" has no room for a job, or for a step of it."""

    def __init__(self, note: str) -> None:
        super().__init__(f"budget exceeded: {note}")


class PollTimeout(PerdureError):  # noqa: N818 - reads as what happened
    """What a job polled for was not ready in time; `polls` counts all looks, `last` is what the last one said."""

    def __init__(self, step: str, polls: int, last: str) -> None:
        super().__init__(f"{step} is still pending after {polls} polls: {last}")
        self.step = step
        self.polls = polls
        self.last = last


class RunningJob(NamedTuple):
    """A job whose attempt still runs, since this time by the database's clock."""

    kind: str
    job_id: str
    since: datetime


class StillRunning(PerdureError):  # noqa: N818 - reads as what is the matter
    """Work did not end in time: `names` lists all of it, `jobs` the attempts, `loops` the loops that run."""

    def __init__(
        self, names: tuple[str, ...], within: float, *, jobs: tuple[RunningJob, ...] = (), loops: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"still running after {round(within, 1):g} s: {', '.join(names)}")
        self.names = names
        self.within = within
        self.jobs = jobs
        self.loops = loops


class LifespanError(PerdureError):
    """A lifespan of the application could not be opened, so the worker did not start; `name` says which."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"lifespan {name} could not be opened: {problem}")
        self.name = name


class ProcessDied(PerdureError):  # noqa: N818 - reads as what happened
    """The process of an isolated attempt ended before its handler had returned; the message says how."""

    def __init__(self, message: str, last_words: str | None = None) -> None:
        super().__init__(message)
        self.last_words = last_words


class StoreError(PerdureError):
    """The database failed us."""


class StoreUnavailable(StoreError):  # noqa: N818 - reads as a state of the store, which it is
    """The database cannot be reached now; trying again later may work. A commit may or may not have happened."""


class StoreLocked(StoreUnavailable):
    """Another process holds the lock of an SQLite file for too long. Nothing was stored."""


class StoreRefused(StoreError):  # noqa: N818 - as above
    """The database is reachable and refuses: read-only, full, no rights, or an unsafe file system."""


class SchemaError(StoreError):
    """The schema is missing, damaged, or too new for this code: two releases or more."""


class ForkError(StoreError):
    """A store opened before a fork was used after it; for SQLite, also: its file was opened anew in the child."""
