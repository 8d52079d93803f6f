"""Approvals: questions of jobs that wait for a person's answer."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.errors import ArgumentError
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("approvals")
_APPROVALS_READ: Final = 500  # waiting jobs
_APPROVALS_PER_PAGE: Final = 50
_ANSWERS_SHOWN: Final = 10
_VERDICTS: Final = {"approve": True, "deny": False}


@room.page("/approvals")
async def approvals(visit: Visit) -> Response:
    """Open questions, newest job first, in pages, and the last answers."""
    number = _page_number(visit.query("page", "1"))
    asked = await visit.shared("approvals", lambda: visit.desk.approvals(most=_APPROVALS_READ))
    answered = await visit.shared("answers", lambda: visit.desk.audit(action="answer", limit=_ANSWERS_SHOWN))
    return await visit.page(
        "pages/jobs/approvals.html",
        title="Approvals",
        now=await visit.now(),
        asked=asked[(number - 1) * _APPROVALS_PER_PAGE : number * _APPROVALS_PER_PAGE],
        next=visit.url("/approvals", page=number + 1) if len(asked) > number * _APPROVALS_PER_PAGE else None,
        first=visit.url("/approvals") if number > 1 else None,
        answered=answered.entries,
    )


def _page_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _APPROVALS_READ // _APPROVALS_PER_PAGE:
        raise ArgumentError(
            "page", f"must be a number from 1 to {_APPROVALS_READ // _APPROVALS_PER_PAGE}, got {text!r:.40}"
        )
    return int(text)


def question_of(visit: Visit) -> str:
    """The question before an answer is given, which names the job, its question and the verdict."""
    verdict = _verdict(visit)
    note = visit.field("note").strip()
    what = f"{verdict.capitalize()} {visit.field('name')!r:.200} of job {visit.path('id')}"
    return f"{what}{f' with the note {note!r}' if note else ''}? The first answer is final."


@room.command("/approvals/{id}/answer", confirm=question_of)
async def answer(visit: Visit) -> Response:
    """Approve or deny, with a note for the job."""
    return visit.done(await give_answer(visit), back="/approvals")


async def give_answer(visit: Visit) -> str:
    """Give the answer of the form, with its note for the job; what was done, in words. The first answer counts."""
    name, note = visit.field("name"), visit.field("note").strip() or None
    given = await visit.desk.answer(
        visit.path("id"), name, approved=_VERDICTS[_verdict(visit)], note=note, why=visit.why or note
    )
    return f"{name}: {'approved' if given.approved else 'denied'}."


def _verdict(visit: Visit) -> str:
    verdict = visit.field("verdict")
    if verdict not in _VERDICTS:
        raise ArgumentError("verdict", f"must be approve or deny, got {verdict!r:.40}")
    return verdict
