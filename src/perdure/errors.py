"""Every error that perdure raises, in one tree.

PerdureError
├── ArgumentError          a value given by the caller is invalid; `field` names it
│   ├── PayloadError       a job's arguments do not fit its handler, cannot be encoded, or are too large
│   │   └── StepError      a step cannot be stored, or a stored step no longer fits the handler; never retried
│   └── SettingsError      a setting is invalid or contradicts another
├── DuplicateJobError      another job holds the unique key, and the caller used on_conflict="reject"
│   └── DuplicateChildError  the same for a child, which `family` and `number` name; no child of its family was stored
├── NotFoundError          no such job, kind or queue
├── ConflictError          the job's state does not allow this
├── EventsGone             the events after a cursor were deleted ├── JobNotSuccessful       a job whose result was
awaited died or was cancelled ├── ChildrenFailed         too many children of a job died or were cancelled; `failed`
lists them │   └── ChildrenTimeout    children were not final in time; `unfinished` lists them ├── EventTimeout
an awaited event did not arrive in time; never retried unless caught ├── BudgetExceeded         a budget with
when_spent="fail" has no room; never retried unless caught ├── PollTimeout            a polled result was not ready in
time ├── StillRunning           work did not end in time; `names`, `jobs` and `loops` list it ├── LifespanError
a lifespan of the application could not be opened; `name` names it ├── ProcessDied            the process of an isolated
attempt ended before its handler returned └── StoreError             a database call failed
    ├── StoreUnavailable   the database cannot be reached now; a later retry may work
    │   └── StoreLocked    another process held the lock of an SQLite file too long; nothing was stored
    ├── StoreTimeout       a query took longer than its time limit; nothing was changed ├── StoreRefused       the
    database is reachable and refuses: read-only, full, no rights, unsafe file system ├── SchemaError        the schema
    is missing, damaged, or too new for this code └── ForkError          the store was opened before a fork and used
    after it
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

_CHILDREN_NAMED = 3  # children by name in one message
_OF_ITS_OWN = "its own children failed: "


class PerdureError(Exception):
    """Base class of all errors that perdure raises."""


class ArgumentError(PerdureError, ValueError):
    """A value given by the caller is invalid; `field` names it and the message says what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field


class PayloadError(ArgumentError):
    """The arguments of a job do not fit its handler, cannot be encoded, or are too large."""


class StepError(PayloadError):
    """A step cannot be stored, or a stored step no longer fits the handler. Never retried."""

    def __init__(self, step: str, problem: str) -> None:
        super().__init__(f"step {step}", problem)
        self.step = step
        self.problem = problem


class SettingsError(ArgumentError):
    """A setting is invalid or contradicts another."""


class DuplicateJobError(PerdureError):
    """Another job holds the unique key, and the caller used on_conflict="reject"."""

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(f"job {job_id} already holds the unique key {key!r}")
        self.key = key
        self.job_id = job_id


class DuplicateChildError(DuplicateJobError):
    """Another job holds the unique key of a child, and the call used on_conflict="reject": no child was stored."""

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
    """A child that died or was cancelled. `number` is the index of its call, starting at 0."""

    number: int
    job_id: str
    state: str
    error: str | None


class ChildrenFailed(PerdureError):  # noqa: N818 - reads as what is the matter
    """Too many children of a job died or were cancelled.

    `results` holds the children's results in call order, None where there is none.
    """

    def __init__(self, family: str, failed: tuple[FailedChild, ...], results: tuple[Any, ...]) -> None:
        super().__init__(f"{len(failed)} of {len(results)} children of {family} failed{_listed(failed)}")
        self.family = family
        self.failed = failed
        self.results = results


class ChildrenTimeout(ChildrenFailed):
    """The children of a job were not final in time. `unfinished` holds the numbers of those that are not."""

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
        self.args = (f"{late}{f', {len(failed)} failed' if failed else ''}{_listed(failed)}",)
        self.unfinished = unfinished
        self.within = within


def _listed(failed: tuple[FailedChild, ...]) -> str:
    text = "; ".join(
        f"job {c.job_id} is {c.state}{f': {_innermost(c.error)}' if c.error else ''}" for c in failed[:_CHILDREN_NAMED]
    )
    more = f"; and {len(failed) - _CHILDREN_NAMED} more" if len(failed) > _CHILDREN_NAMED else ""
    return f": {text}{more}" if text else ""


def _innermost(error: str) -> str:
    """The error of a child. If that error is about its own children, the innermost error."""
    if not error.startswith("perdure.Children"):
        return error
    before, found, heart = error.partition(_OF_ITS_OWN)
    return f"{_OF_ITS_OWN}{heart if found else before.partition(' failed: ')[2] or before}"


class ConflictError(PerdureError):
    """The job's state does not allow this."""


class EventsGone(PerdureError):  # noqa: N818 - reads as what happened
    """The events after a cursor were deleted, or the cursor is of another database: start without a cursor."""


class EventTimeout(PerdureError):  # noqa: N818 - reads as what happened
    """An awaited event did not arrive in time. The outcome is stored: every later attempt raises it again.

    `question`: the event was the answer to this approval question.
    """

    def __init__(self, event: str, waited: str, question: str | None = None) -> None:
        text = f"event {event!r} did not arrive" if question is None else f"{question!r} was not answered"
        super().__init__(f"{text} within {waited}")
        self.event = event


class BudgetExceeded(PerdureError):  # noqa: N818 - reads as what happened
    """A budget with when_spent="fail" has no room for a job or one of its steps."""

    def __init__(self, note: str) -> None:
        super().__init__(f"budget exceeded: {note}")


class PollTimeout(PerdureError):  # noqa: N818 - reads as what happened
    """A polled result was not ready in time; `polls` counts all polls, `last` is the message of the last one."""

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
    """Work did not end in time: `names` lists all of it, `jobs` the attempts, `loops` the running loops."""

    def __init__(
        self, names: tuple[str, ...], within: float, *, jobs: tuple[RunningJob, ...] = (), loops: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"still running after {round(within, 1):g} s: {', '.join(names)}")
        self.names = names
        self.within = within
        self.jobs = jobs
        self.loops = loops


class LifespanError(PerdureError):
    """A lifespan of the application could not be opened, so the worker did not start; `name` names it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"lifespan {name} could not be opened: {problem}")
        self.name = name


class ProcessDied(PerdureError):  # noqa: N818 - reads as what happened
    """The process of an isolated attempt ended before its handler returned; the message says how."""

    def __init__(self, message: str, last_words: str | None = None) -> None:
        super().__init__(message)
        self.last_words = last_words


class StoreError(PerdureError):
    """A database call failed."""


class StoreUnavailable(StoreError):  # noqa: N818 - reads as a state of the store, which it is
    """The database cannot be reached now; a later retry may work. A commit may or may not have happened."""


class StoreLocked(StoreUnavailable):
    """Another process held the lock of an SQLite file too long. Nothing was stored."""


class StoreTimeout(StoreError):  # noqa: N818 - reads as what is the matter
    """A query took longer than its time limit. Nothing was changed; a narrower one may be quicker."""


class StoreRefused(StoreError):  # noqa: N818 - as above
    """The database is reachable and refuses: read-only, full, no rights, or an unsafe file system."""


class SchemaError(StoreError):
    """The schema is missing, damaged, or too new for this code: two releases or more."""


class ForkError(StoreError):
    """A store opened before a fork was used after it. For SQLite, also: the child process opened the file again."""
