"""The records that the desk returns."""

from __future__ import annotations

from datetime import datetime
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from perdure.domain.flows.flow import FamilyView, Progress, StepRecord
from perdure.domain.gate import Cost
from perdure.domain.gate_record import GateRecord
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.log_lines import LogLine
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import AuditEntry
from perdure.domain.plain_records import plain, unpacked
from perdure.domain.worker import WorkerView
from perdure.storage.records import Count


class JobDetail(Struct, frozen=True):
    """One job with its history: every attempt that did not succeed, oldest first, including those before a requeue.

    `families` holds the status of its children; `steps` its steps, in the order in which they began; `progress` its
    last report; `lines` its newest log lines, oldest first; `costs` what it has spent from each budget in the last
    month; `gates` the gates that its attempts have met, oldest attempt first.
    """

    job: JobView
    attempts: tuple[Attempt, ...]
    families: tuple[FamilyView, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()
    costs: tuple[Cost, ...] = ()
    gates: tuple[GateRecord, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON types: times as ISO 8601 text; stored documents of the job and its steps decoded."""
        steps = [{**plain(step), "result": unpacked(step.result)} for step in self.steps]
        return {**plain(self), "job": self.job.to_dict(), "steps": steps}


_REMEDIES: Final = {
    "resume": "perdure resume",
    "close_breaker": "perdure breakers close",
    "run_now": "perdure jobs run-now",
    "requeue": "perdure jobs requeue",
    "loud": "perdure quiet --off",
    "emit": "perdure emit",
}


class Remedy(Struct, frozen=True):
    """The command that helps: what every surface offers as a button or key.

    `action` is `resume` (of a pause), `close_breaker`, `run_now`, `requeue`, `answer`, `emit` or `loud` (of workers);
    `target` names the pause, breaker, job, question, event or worker.
    """

    action: str
    target: str
    label: str

    @property
    def cli(self) -> str:
        """The same command for a terminal; empty for an answer, which also needs the job and a verdict."""
        words = _REMEDIES.get(self.action)
        return f"{words} {quote(self.target)}" if words else ""


class Why(Struct, frozen=True, kw_only=True):
    """Why a job does not run: the answer in one sentence, further facts, and what to do about it.

    `until` is when that changes by itself, if known.
    """

    job: JobView
    answer: str
    facts: tuple[str, ...] = ()
    until: datetime | None = None
    what_to_do: str | None = None
    remedy: Remedy | None = None


class Asking(Struct, frozen=True):
    """A job that waits for an answer to its question of this name; `until` None: without a time limit."""

    job: JobView
    name: str
    until: datetime | None = None


class JobPage(Struct, frozen=True):
    """A page of jobs, newest first. `next` is the `before` of the following page; None: the end.

    `searched_to` says how far back a search got that had to check jobs one by one and ran out of time: older jobs may
    match, and `next` continues there, even if `jobs` is empty. None: every job that could come before `next` was
    checked.
    """

    jobs: tuple[JobView, ...]
    next: JobId | None
    searched_to: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON types."""
        return {
            "jobs": [job.to_dict() for job in self.jobs],
            "next": self.next,
            "searched_to": plain(self.searched_to),
        }


class AuditPage(Struct, frozen=True):
    """A page of the audit trail, newest first. `next` is the `before` of the following page; None: the end."""

    entries: tuple[AuditEntry, ...]
    next: int | None


class Overview(Struct, frozen=True):
    """Counts of jobs by queue and state, and the workers, by the database's clock."""

    at: datetime
    counts: tuple[Count, ...]
    workers: tuple[WorkerView, ...]

    def total(self, state: JobState) -> int:
        """How many jobs are in this state, over all queues; a lower bound if a count was capped."""
        return sum(count.jobs for count in self.counts if count.state is state)


class Unchanged(Struct, frozen=True):
    """A job that a command skipped, and why."""

    id: JobId
    state: JobState
    why: str


class Changed(Struct, frozen=True):
    """What a command did, and what it skipped.

    `asked` are those of `ids` that are running: they were asked to stop. `more` says that the command's limit was
    reached while other jobs still match.
    """

    ids: tuple[JobId, ...] = ()
    asked: tuple[JobId, ...] = ()
    not_found: tuple[str, ...] = ()
    unchanged: tuple[Unchanged, ...] = ()
    more: bool = False
