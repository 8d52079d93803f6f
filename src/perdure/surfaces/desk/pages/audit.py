"""The audit trail: who did what, when, to what, why and from where."""

from __future__ import annotations

import re
from shlex import quote
from typing import Any, Final

from starlette.responses import Response

from perdure.errors import ArgumentError
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.changes import account_of
from perdure.surfaces.desk.view.moments import read_moment
from perdure.surfaces.desk.visit import Visit

room = Room("audit")
_ENTRIES_PER_PAGE: Final = 50
_TEXTS: Final = ("actor", "action", "job", "source", "bulk")
_TIMES: Final = ("since", "until")
_SPAN: Final = re.compile(r"[0-9.]+ ?[a-z]+")
FIELDS: Final = (*_TEXTS, *_TIMES)


@room.page("/audit")
async def audit(visit: Visit) -> Response:
    """Entries that match the filters, newest first."""
    given = {name: visit.query(name).strip() for name in FIELDS}
    now = await visit.now()
    which: dict[str, Any] = {name: given[name] for name in _TEXTS if given[name]}
    which |= {name: read_moment(name, given[name], now) for name in _TIMES if given[name]}
    page = await visit.desk.audit(**which, limit=_ENTRIES_PER_PAGE, before=_number(visit.query("before")))
    return await visit.page(
        "pages/audit.html",
        title="Audit",
        now=now,
        entries=[(entry, account_of(entry)) for entry in page.entries],
        given=given,
        is_filtered=any(given.values()),
        is_first=not visit.query("before"),
        next=visit.url("/audit", given, before=page.next) if page.next else None,
        first=visit.url("/audit", given) if visit.query("before") else None,
        command=_command(given),
    )


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > len(str(2**63)):
        raise ArgumentError("before", f"must be the number of an entry, got {text!r:.40}")
    return int(text)


def _command(given: dict[str, str]) -> str:
    """The same query for a terminal, where a time before now has a minus sign."""
    words = {name: f"-{text}" if name in _TIMES and _SPAN.fullmatch(text) else text for name, text in given.items()}
    return " ".join(["perdure audit list", *(f"--{name}={quote(text)}" for name, text in words.items() if text)])
