"""Bulk commands: a counted dry run, a confirmation that names the count, progress, and a result."""

from __future__ import annotations

import shlex
from typing import Final

from starlette.responses import Response

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.operate.bulk.records import BulkPlan
from perdure.operate.search import format_search
from perdure.surfaces.desk.pages.jobs.jobs import read_search
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("bulk")
_COMMANDS_SHOWN: Final = 50
_DELAY: Final = "1h"
_WORDS: Final = {
    "requeue": "Requeue",
    "cancel": "Cancel",
    "run_now": "Run now",
    "reschedule": "Reschedule",
    "mark": "Mark",
    "purge": "Purge",
    "delete": "Delete",
}


@room.page("/bulk")
async def bulks(visit: Visit) -> Response:
    """The bulk commands, newest first."""
    before = visit.query("before") or None
    page = await visit.desk.bulks(limit=_COMMANDS_SHOWN, before=before)
    return await visit.page(
        "pages/jobs/bulks.html",
        title="Bulk commands",
        now=await visit.now(),
        bulks=page.bulks,
        next=visit.url("/bulk", before=page.next) if page.next else None,
        first=visit.url("/bulk") if before else None,
        words=_WORDS,
        as_search=format_search,
    )


@room.page("/bulk/plan")
async def plan(visit: Visit) -> Response:
    """The counted dry run of a command on a search: what would happen, and the button that starts it."""
    action, text = visit.query("action"), visit.query("q")
    if action not in _WORDS:
        raise ArgumentError("action", f"must be one of {', '.join(_WORDS)}, got {action!r:.40}")
    if action == "mark" and "mark" not in visit.request.query_params:
        return await visit.page("pages/jobs/bulk_word.html", title="Mark", search=text)
    made = await _planned(visit, action, text)
    return await visit.page(
        "pages/jobs/bulk_plan.html",
        title="Dry run",
        now=await visit.now(),
        plan=made,
        word=_WORDS[action],
        search=format_search(made.filter),
        asked=text,
        delay=visit.query("delay", _DELAY),
        mark=visit.query("mark"),
        cli_line=_cli(visit, action, format_search(made.filter)),
    )


@room.page("/bulk/{id}")
async def bulk(visit: Visit) -> Response:
    """The progress of a bulk command, and its result."""
    found = await visit.desk.bulk(visit.path("id"))
    return await visit.page(
        "pages/jobs/bulk.html",
        title="Bulk command",
        now=await visit.now(),
        bulk=found,
        word=_WORDS.get(found.action, found.action),
        search=format_search(found.filter),
    )


@room.command("/bulk")
async def start(visit: Visit) -> Response:
    """Start the command that a dry run has planned."""
    started = await visit.desk.start_bulk(visit.field("token"), why=visit.why)
    return visit.done("Started. This page shows its progress.", back=f"/bulk/{started.id}")


@room.command("/bulk/{id}/stop", confirm="Stop this bulk command? Jobs that it has changed stay changed.")
async def stop(visit: Visit) -> Response:
    """Stop a bulk command."""
    await visit.desk.stop_bulk(visit.path("id"), why=visit.why)
    return visit.done("The bulk command was told to stop.", back=f"/bulk/{visit.path('id')}")


async def _planned(visit: Visit, action: str, text: str) -> BulkPlan:
    which = await read_search(visit, text)
    if action == "reschedule":
        return await visit.desk.plan(action, which, run_at=parse_duration("delay", visit.query("delay", _DELAY)))
    if action == "mark":
        return await visit.desk.plan(action, which, mark=visit.query("mark").strip() or None)
    return await visit.desk.plan(action, which)


def _cli(visit: Visit, action: str, search: str) -> str:
    words = ["perdure", "dead" if action == "purge" else "jobs", action.replace("_", "-")]
    if action == "reschedule":
        words += ["--in", visit.query("delay", _DELAY)]
    if action == "mark":
        mark = visit.query("mark").strip()
        words += ["--as", mark] if mark else ["--clear"]
    return shlex.join([*words, *(["--search", search] if search else ["--all"])])
