"""A person's answer that a job waits for."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.errors import ArgumentError

APPROVAL: Final = "approval:"  # prefix of the steps and events of approvals
_AFTER_ALL: Final = "g"  # sorts behind every id


class Approval(Struct, frozen=True):
    """The answer, and who gave it."""

    approved: bool
    by: str
    note: str | None = None


def approval_event(job_id: JobId, name: str) -> str:
    """The event that carries the answer to a job's question of this name."""
    return f"{APPROVAL}{job_id}:{name}"


def approvals_before(job_id: JobId | None) -> tuple[str, str]:
    """The first name of the events of answers, and one behind those of all jobs that are older than this one."""
    return APPROVAL, f"{APPROVAL}{job_id or _AFTER_ALL}"


def approval_asked(job_id: JobId, event: str) -> str | None:
    """The name of the question behind this event; None: it is another kind of event."""
    opening = approval_event(job_id, "")
    return event.removeprefix(opening) if event.startswith(opening) else None


def refuse_answer(event: str) -> None:
    """Refuse to emit an answer as an ordinary event: an answer must record who gave it."""
    if event.startswith(APPROVAL):
        raise ArgumentError(
            "event", f"{event!r} is the answer to a job's question: give it with desk.answer, or `perdure approve`"
        )
