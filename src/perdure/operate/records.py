"""What the desk answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure.domain.flows.flow import FamilyView, Progress, StepRecord
from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.log_lines import LogLine
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import AuditEntry
from perdure.domain.plain_records import plain, unpacked
from perdure.domain.worker import WorkerView
from perdure.storage.records import Count


class JobDetail(Struct, frozen=True):
    """One job with its history: every attempt that did not succeed, oldest first, over all its lives.

    `families` are the children that it has spawned, as far as they are; `steps` what it has done or waits for, in the
    order in which that was begun; `progress` how far it was when it last said so; `lines` what it has
    logged, the newest lines of it, oldest first; `costs` what it has spent from each budget in the last month.
    """

    job: JobView
    attempts: tuple[Attempt, ...]
    families: tuple[FamilyView, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()
    costs: tuple[Cost, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON's own types: times as ISO 8601 text; stored documents of the job and its steps decoded."""
        steps = [{**plain(step), "result": unpacked(step.result)} for step in self.steps]
        return {**plain(self), "job": self.job.to_dict(), "steps": steps}


class Why(Struct, frozen=True, kw_only=True):
    """Why a job does not run: the answer in one sentence, what is known besides, and what can be done about it.

    `until` is when that changes by itself, as far as anybody knows.
    """

    job: JobView
    answer: str
    facts: tuple[str, ...] = ()
    until: datetime | None = None
    what_to_do: str | None = None


class Asking(Struct, frozen=True):
    """A job that waits for somebody's answer to its question of this name; `until` None: for as long as it takes."""

    job: JobView
    name: str
    until: datetime | None = None


class JobPage(Struct, frozen=True):
    """A piece of a list, newest first. `next` is where the following piece begins (its `before`); None: the end."""

    jobs: tuple[JobView, ...]
    next: JobId | None

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON's own types."""
        return {"jobs": [job.to_dict() for job in self.jobs], "next": self.next}


class AuditPage(Struct, frozen=True):
    """A piece of the audit trail, newest first. `next` is the `before` of the following piece; None: the end."""

    entries: tuple[AuditEntry, ...]
    next: int | None


class Overview(Struct, frozen=True):
    """How many jobs stand where, and who works, by the database's clock."""

    at: datetime
    counts: tuple[Count, ...]
    workers: tuple[WorkerView, ...]

    def total(self, state: JobState) -> int:
        """How many jobs stand in this state, over all queues; at least that many where a count was capped."""
        return sum(count.jobs for count in self.counts if count.state is state)


class Unchanged(Struct, frozen=True):
    """A job that a command could do nothing to, and why."""

    id: JobId
    state: JobState
    why: str


class Changed(Struct, frozen=True):
    """What a command did, and what it could not do.

    `asked` are those of `ids` that run at this moment: they were asked to stop and end when they do. `more` says that
    the command's limit was reached while other jobs still match.
    """

    ids: tuple[JobId, ...] = ()
    asked: tuple[JobId, ...] = ()
    not_found: tuple[str, ...] = ()
    unchanged: tuple[Unchanged, ...] = ()
    more: bool = False
