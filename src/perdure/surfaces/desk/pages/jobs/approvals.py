"""Approvals: questions of jobs that wait for a person's answer."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.errors import ArgumentError
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("approvals")
_LOOKED_AT: Final = 500  # waiting jobs
_SHOWN: Final = 50
_ANSWERED: Final = 10
_VERDICTS: Final = {"approve": True, "deny": False}


@room.page("/approvals")
async def approvals(visit: Visit) -> Response:
    """Open questions, newest job first, in pages, and the last answers."""
    number = _page_number(visit.query("page", "1"))
    asked = await visit.shared("approvals", lambda: visit.desk.approvals(most=_LOOKED_AT))
    answered = await visit.shared("answers", lambda: visit.desk.audit(action="answer", limit=_ANSWERED))
    return await visit.page(
        "pages/jobs/approvals.html",
        title="Approvals",
        now=await visit.now(),
        asked=asked[(number - 1) * _SHOWN : number * _SHOWN],
        next=visit.url("/approvals", page=number + 1) if len(asked) > number * _SHOWN else None,
        first=visit.url("/approvals") if number > 1 else None,
        answered=answered.entries,
    )


def _page_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _LOOKED_AT // _SHOWN:
        raise ArgumentError("page", f"must be a number from 1 to {_LOOKED_AT // _SHOWN}, got {text!r:.40}")
    return int(text)


@room.command("/approvals/{id}/answer")
async def answer(visit: Visit) -> Response:
    """Approve or deny, with a note for the job; the first answer counts."""
    verdict, name = visit.field("verdict"), visit.field("name")
    if verdict not in _VERDICTS:
        raise ArgumentError("verdict", f"must be approve or deny, got {verdict!r:.40}")
    note = visit.field("note").strip() or None
    given = await visit.desk.answer(
        visit.path("id"), name, approved=_VERDICTS[verdict], note=note, why=visit.why or note
    )
    return visit.done(f"{name}: {'approved' if given.approved else 'denied'}.", back="/approvals")
