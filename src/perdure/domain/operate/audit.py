"""The audit trail: who did what, when, to which job.

What people and applications do is always written down. What the engine itself does with a claim is written where a
worker's settings switch that on, under the name of `system`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition

SYSTEM: Final = "system"
HANDLER: Final = "handler"  # who cancelled a job, if its own handler did
_APPLICATION: Final = "app"


class ActorType(StrEnum):
    """What sort of actor a name means."""

    PERSON = "person"
    APPLICATION = "application"  # `app`, or `app:` and a name
    SYSTEM = "system"  # the engine: `system`, or a schedule


class Audited(StrEnum):
    """What the engine may write down of its own: the setting's word."""

    RETRY = "retry"  # an attempt failed, another one follows
    RESCUE = "rescue"  # a process died under a job, which comes back
    DEATH = "death"  # the last attempt failed
    CANCEL = "cancel"  # a running job has ended cancelled, or a job was cancelled with its parent

    @property
    def action(self) -> str:
        """The word for it in the trail."""
        return f"job_{self}"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One entry of the trail. `details` say more, each action in its own words."""

    id: int
    at: datetime
    actor: str
    action: str
    job_id: JobId | None
    details: dict[str, Any]

    @property
    def actor_type(self) -> ActorType:
        """What sort of actor it was, as its name tells."""
        return actor_type(self.actor)


def actor_type(actor: str) -> ActorType:
    """What sort of actor a name means: `system` and schedules, `app` and `app:…`, and everybody else."""
    if actor == SYSTEM or actor.startswith("schedule "):
        return ActorType.SYSTEM
    return ActorType.APPLICATION if actor == _APPLICATION or actor.startswith("app:") else ActorType.PERSON


def noted_as(move: Transition, audited: Collection[Audited]) -> Audited | None:
    """As what a move of a claimed job is written down, if it is."""
    found = _SORT.get(move.to) or (_RETURNS.get(move.reason) if move.to is not JobState.SUCCEEDED else None)
    return found if found in audited else None


_SORT: Final = {JobState.DEAD: Audited.DEATH, JobState.CANCELLED: Audited.CANCEL}
_RETURNS: Final = {
    Reason.FAILED: Audited.RETRY,
    Reason.TIMED_OUT: Audited.RETRY,
    Reason.CRASHED: Audited.RESCUE,
}
