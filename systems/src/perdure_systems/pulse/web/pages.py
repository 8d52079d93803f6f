"""Pulse's pages: jobs with their progress and workers with their phase, one job with its children, and money."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import NotFoundError, Page
from perdure_systems.kit.pages import Link, Pages
from perdure_systems.kit.web import read_page
from perdure_systems.pulse import operations
from perdure_systems.pulse.jobs import HANDLERS
from perdure_systems.pulse.settings import QUEUE, read_settings
from perdure_systems.pulse.web.money import money
from perdure_systems.pulse.web.routes import desk, result_of
from perdure_systems.pulse.web.views import STATES, show_all, show_page
from perdure_systems.pulse.web.workers import show_workers

_JOBS_PER_PAGE: Final = 25
_CHILDREN_SHOWN: Final = 200
_CHIPS: Final = {"queued": "ready", "completed": "done", "failed": "dead"}

pages = Pages(
    "Pulse", Path(__file__).parent / "templates", [Link("Jobs", "/"), Link("Money", "/money")], jobs=f"queue:{QUEUE}"
)


def chip_of(state: str) -> str:
    """The class of a state's chip."""
    return _CHIPS.get(state, state)


async def jobs_page(request: Request) -> Response:
    """Jobs, newest first, with the workers above them."""
    at, page = await desk(), read_page(request, size=_JOBS_PER_PAGE)
    state = request.query_params.get("state") or None
    jobs, more = await show_page(at, state, Page(limit=page.size, number=page.number))
    return pages.render(
        "jobs.html",
        here="/",
        jobs=jobs,
        more=more,
        page=page.number,
        state=state,
        states=STATES,
        handlers=list(HANDLERS),
        workers=await show_workers(at),
        money=await money(at),
        has_folder=read_settings().documents is not None,
        chip_of=chip_of,
    )


async def job_page(request: Request) -> Response:
    """One job, its result and its children."""
    at = await desk()
    try:
        view = await operations.find(at, request.path_params["id"])
    except NotFoundError as error:
        missing = pages.render("missing.html", here="/", detail=str(error))
        missing.status_code = HTTPStatus.NOT_FOUND
        return missing
    detail = await at.job(view.id)
    [job] = await show_all(at, [view])
    return pages.render(
        "job.html",
        here="/",
        job=job,
        job_id=view.id,
        result=await result_of(view),
        children=await show_all(at, await operations.children_of(at, view, _CHILDREN_SHOWN)),
        attempts=detail.attempts,
        why=await at.why(view.id),
        chip_of=chip_of,
    )


async def money_page(_: Request) -> Response:
    """Limits, and what was spent."""
    return pages.render("money.html", here="/money", money=await money(await desk()))


PAGES: Final = [Route("/", jobs_page), Route("/money", money_page), Route("/jobs/{id}", job_page)]
