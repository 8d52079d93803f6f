"""A person's answer that a job waits for."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.errors import ArgumentError

APPROVAL: Final = "approval:"  # how the steps and events of such questions begin


class Approval(Struct, frozen=True):
    """What somebody has said, and who it was."""

    approved: bool
    by: str
    note: str | None = None


def approval_event(job_id: JobId, name: str) -> str:
    """The event by which a job learns the answer to its question of this name."""
    return f"{APPROVAL}{job_id}:{name}"


def approval_asked(job_id: JobId, event: str) -> str | None:
    """The name of the question that a job asks by this event; None: it is an event of another sort."""
    opening = approval_event(job_id, "")
    return event.removeprefix(opening) if event.startswith(opening) else None


def refuse_answer(event: str) -> None:
    """Refuse to have an answer emitted as any other event: it must say who gave it."""
    if event.startswith(APPROVAL):
        raise ArgumentError(
            "event", f"{event!r} is somebody's answer to a job: give it with desk.answer, or `perdure approve`"
        )
