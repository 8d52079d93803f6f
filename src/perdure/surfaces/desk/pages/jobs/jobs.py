"""Jobs: a search with suggestions, a live list, and commands on the chosen jobs or on all that match."""

from __future__ import annotations

import json
from typing import Final

from starlette.responses import Response

from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.operate.commands.actions import actions_for
from perdure.operate.desk import Desk
from perdure.operate.records import Changed
from perdure.operate.search import parse_search
from perdure.operate.wording import listed, some
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("jobs")
_JOBS_PER_PAGE: Final = 50
_SEARCH_LIMIT_CHARACTERS: Final = 2_000
_JOBS_CHOSEN_LIMIT: Final = 200
_VERBS: Final = {"requeue": "Requeue", "cancel": "Cancel", "run_now": "Run now:"}
_TABS: Final = {
    "all": None,
    "active": "state:scheduled,ready,running,retrying,waiting,paused",
    "ready": "state:ready",
    "running": "state:running",
    "retrying": "state:retrying",
    "waiting": "state:waiting,paused,scheduled",
    "dead": "state:dead",
    "finished": "state:succeeded,cancelled",
}


@room.page("/jobs")
async def jobs(visit: Visit) -> Response:
    """The jobs that match a search, newest first."""
    text = visit.query("q").strip()
    now = await visit.now()
    try:
        which = await read_search(visit, text)
    except ArgumentError as error:
        return await visit.page("pages/jobs/bad_search.html", title="Jobs", status=400, problem=str(error), search=text)
    page = await visit.desk.jobs(which, Page(_JOBS_PER_PAGE, visit.query("before") or None))
    return await visit.page(
        "pages/jobs/jobs.html",
        title="Jobs",
        now=now,
        jobs=page.jobs,
        search=text,
        retries=attempts_shown,
        here=_here(visit),
        tabs=_tabs(text),
        actions=actions_for(which.states),
        searched_to=page.searched_to,
        next=visit.url("/jobs", q=text, before=page.next) if page.next else None,
        first=visit.url("/jobs", q=text) if visit.query("before") else None,
    )


@room.page("/suggestions")
async def suggestions(visit: Visit) -> Response:
    """Suggestions for the search box, as JSON for the script."""
    found = await visit.desk.suggestions(visit.query("q")[:_SEARCH_LIMIT_CHARACTERS])
    body = json.dumps([{"text": each.text, "hint": each.hint} for each in found])
    return Response(body, headers={"Cache-Control": "no-store"}, media_type="application/json")


def _here(visit: Visit) -> str:
    """This page of the list, without the prefix of the desk."""
    query = visit.request.url.query
    return f"{visit.own_path}?{query}" if query else visit.own_path


def _question(visit: Visit) -> str:
    action = visit.field("action")
    if action not in _VERBS:
        raise ArgumentError("action", f"must be {listed(_VERBS)}, got {action!r:.40}")
    return f"{_VERBS[action]} {some(len(_chosen(visit)), 'job')}?"


@room.command("/jobs", confirm=_question)
async def act(visit: Visit) -> Response:
    """Run a command on the jobs whose boxes are checked."""
    done = await _act(visit.desk, visit.field("action"), _chosen(visit), visit.why)
    return visit.done(_account(visit.field("action"), done), back=visit.back("/jobs"))


def _chosen(visit: Visit) -> list[str]:
    ids = [value for value in visit.form.getlist("id") if isinstance(value, str)]
    if not ids:
        raise ArgumentError("id", "is missing: choose at least one job by its box")
    if len(ids) > _JOBS_CHOSEN_LIMIT:
        raise ArgumentError(
            "id", f"may name at most {_JOBS_CHOSEN_LIMIT} jobs, got {len(ids)}: act on the search instead"
        )
    return ids


async def _act(desk: Desk, action: str, ids: list[str], why: str) -> Changed:
    match action:
        case "requeue":
            return await desk.requeue(ids, why=why)
        case "cancel":
            return await desk.cancel(ids, why=why)
        case "run_now":
            return await desk.run_now(ids, why=why)
        case _:
            raise ArgumentError("action", f"must be {listed(_VERBS)}, got {action!r:.40}")


def _account(action: str, done: Changed) -> str:
    verb = {"requeue": "Requeued", "cancel": "Cancelled", "run_now": "Made ready"}[action]
    left = len(done.unchanged) + len(done.not_found)
    rest = f" {some(left, 'job')} could not be changed: {done.unchanged[0].why}." if done.unchanged else ""
    return f"{verb} {some(len(done.ids), 'job')}.{rest}"


async def read_search(visit: Visit, text: str) -> JobFilter:
    """The filter of a search; refuses a search that is too long."""
    if len(text) > _SEARCH_LIMIT_CHARACTERS:
        raise ArgumentError("search", f"has {len(text):,} characters, {_SEARCH_LIMIT_CHARACTERS:,} are allowed")
    return parse_search(text, now=await visit.now())


def _tabs(text: str) -> list[tuple[str, str, bool]]:
    """The states as links: each keeps the rest of the search."""
    rest = " ".join(word for word in text.split() if not word.startswith("state:"))
    state = " ".join(word for word in text.split() if word.startswith("state:"))
    return [(name, f"{rest} {words or ''}".strip(), state == (words or "")) for name, words in _TABS.items()]


def attempts_shown(job: JobView) -> str:
    """The numbers of `Retry 3/5` (A12): failures so far, of the maximum."""
    if job.state is JobState.SUCCEEDED or not job.failures:
        return ""
    return f"{job.failures}/{job.max_attempts}" if job.max_attempts else str(job.failures)
