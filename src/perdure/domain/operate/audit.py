"""The audit trail: who did what, when, why, from where, and to which jobs.

Actions of people and applications are always recorded. Actions of the engine on a claim are recorded, under the name
`system`, where a worker's settings enable it.
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
HANDLER: Final = "handler"  # the actor when a job's own handler cancels it
_APPLICATION: Final = "app"


class ActorType(StrEnum):
    """The type of an actor, which its name shows."""

    PERSON = "person"
    APPLICATION = "application"  # `app`, or `app:` and a name
    SYSTEM = "system"  # the engine: `system`, or a schedule


class Audited(StrEnum):
    """What the engine may record about its own actions: the words of the setting."""

    RETRY = "retry"  # an attempt failed, a retry follows
    RESCUE = "rescue"  # a process died during a job, which will run again
    DEATH = "death"  # the last attempt failed
    CANCEL = "cancel"  # a running job ended cancelled, or a job was cancelled with its parent

    @property
    def action(self) -> str:
        """The word for it in the trail."""
        return f"job_{self}"


class By(Struct, frozen=True):
    """The origin of a command: who, why, and from which surface (and address).

    `bulk` is the bulk command that it is a part of, if it is.
    """

    actor: str
    why: str | None = None
    source: str | None = None
    bulk: str | None = None


class Note(Struct, frozen=True, kw_only=True):
    """What a command did; the trail stores it together with a `By`.

    `jobs` is the number of jobs. `details` hold `before` and `after` where something changed; a deleted thing has no
    `after`, a new one no `before`.
    """

    action: str
    job_id: JobId | None = None
    jobs: int = 0
    details: dict[str, Any] = {}


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One entry of the trail. `details` say more, with the state `before` and `after` of what was changed.

    `source` is the surface and the address that the command came from: "cli", "desk 127.0.0.1", "code". `jobs` says on
    how many jobs it was done. `bulk` names the bulk command that the entry belongs to.
    """

    id: int
    at: datetime
    actor: str
    action: str
    job_id: JobId | None
    details: dict[str, Any]
    why: str | None = None
    source: str | None = None
    jobs: int = 0
    bulk: str | None = None

    @property
    def actor_type(self) -> ActorType:
        """The type of the actor, which its name shows."""
        return actor_type(self.actor)


def actor_type(actor: str) -> ActorType:
    """The type of an actor: `system` and schedules, `app` and `app:…`, and people."""
    if actor == SYSTEM or actor.startswith("schedule "):
        return ActorType.SYSTEM
    return ActorType.APPLICATION if actor == _APPLICATION or actor.startswith("app:") else ActorType.PERSON


def noted_as(move: Transition, audited: Collection[Audited]) -> Audited | None:
    """The action recorded for a move of a claimed job, if any."""
    found = _SORT.get(move.to) or (_RETURNS.get(move.reason) if move.to is not JobState.SUCCEEDED else None)
    return found if found in audited else None


_SORT: Final = {JobState.DEAD: Audited.DEATH, JobState.CANCELLED: Audited.CANCEL}
_RETURNS: Final = {
    Reason.FAILED: Audited.RETRY,
    Reason.TIMED_OUT: Audited.RETRY,
    Reason.CRASHED: Audited.RESCUE,
}
