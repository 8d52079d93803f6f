"""The pages: certificates, jobs, loops, and what was found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from perdure import JobFilter, JobView, Page
from perdure_systems.certificates.jobs import ISSUE, QUEUE, database, desk, tag
from perdure_systems.certificates.records import ALL, BY_ID, Agent, Certificate, Endpoint, Found, LoopRun
from perdure_systems.certificates.settings import read_loops, read_settings
from perdure_systems.certificates.web.certificate_routes import find_certificate
from perdure_systems.certificates.web.job_routes import failed_attempts, find_job, job_fields, trail_of, waiting_jobs
from perdure_systems.kit.pages import Link, Pages

_JOBS_SHOWN: Final = 50
_COLOURS: Final = {
    "Pending": "ready", "Running": "running", "Failed": "dead", "Completed": "done", "Cancelled": "cancelled",
    "Paused": "paused", "AwaitingCSR": "waiting", "AwaitingApproval": "waiting", "active": "done", "requested": "ready",
    "failed": "dead", "expired": "dead", "online": "done", "offline": "dead", "healthy": "done", "unreachable": "dead",
}  # fmt: skip
_TABS: Final = (("All", ""), ("Waiting for a person", "waiting"), ("Failed", "failed"))

pages = Pages("Certificates", Path(__file__).parent / "templates", [], jobs=f"queue:{QUEUE}")


async def certificates_page(_: Request) -> Response:
    """The certificates, and the agents."""
    agents = await database.all(Agent, "SELECT * FROM certificate_agent ORDER BY id")
    certificates = await database.all(Certificate, ALL)
    days = read_settings().renew_before_days
    return await _render("certificates.html", "/", certificates=certificates, agents=agents, days=days)


async def certificate_page(http: Request) -> Response:
    """One certificate, its chain and its jobs."""
    one = await find_certificate(http)
    views = (await (await desk()).jobs(JobFilter(kind=ISSUE, tag=tag(one.id)), Page(limit=_JOBS_SHOWN))).jobs
    return await _render("certificate.html", "/", one=one, jobs=[job_fields(view) for view in views])


async def jobs_page(http: Request) -> Response:
    """The newest jobs, all or those that a person must look at."""
    show = http.query_params.get("show", "")
    views: list[JobView]
    if show == "waiting":
        views = (await waiting_jobs())[:_JOBS_SHOWN]
    else:
        which = JobFilter(kind=ISSUE, states="dead") if show == "failed" else JobFilter(kind=ISSUE)
        views = list((await (await desk()).jobs(which, Page(limit=_JOBS_SHOWN))).jobs)
    jobs = [job_fields(view) for view in views]
    names = {}
    for job in jobs:  # a page of them
        found = await database.one(Certificate, BY_ID, {"id": job["certificate_id"]})
        names[job["certificate_id"]] = None if found is None else found.common_name
    return await _render("jobs.html", "/jobs", jobs=jobs, names=names, tabs=_TABS, show=show)


async def job_page(http: Request) -> Response:
    """One job: who asked for what, how it went, and what can be done to it."""
    view = await find_job(http.path_params["id"])
    wanted = await database.one(Certificate, BY_ID, {"id": (view.arguments or {}).get("certificate", "")})
    attempts, trail = await failed_attempts(str(view.id)), await trail_of(str(view.id))
    return await _render("job.html", "/jobs", job=job_fields(view), one=wanted, attempts=attempts, trail=trail)


async def loops_page(_: Request) -> Response:
    """The loops, when each last ran, and the endpoints that they look at."""
    runs = {run.name: run for run in await database.all(LoopRun, "SELECT * FROM certificate_loop")}
    endpoints = await database.all(Endpoint, "SELECT * FROM certificate_endpoint ORDER BY address")
    loops = [
        {"name": one.name, "variable": one.variable, "every": span(one.interval), "limit": span(one.limit)}
        for one in read_loops().values()
    ]
    return await _render("loops.html", "/loops", loops=loops, runs=runs, endpoints=endpoints)


async def found_page(_: Request) -> Response:
    """What the scans have found."""
    found = await database.all(Found, "SELECT * FROM certificate_found ORDER BY not_after LIMIT 500")
    return await _render("found.html", "/found", found=found)


async def _render(template: str, here: str, **values: Any) -> Response:
    """A page, with the numbers of jobs that wait for a person and that have failed in the navigation."""
    counted = await (await desk()).count_by("state", which=JobFilter(kind=ISSUE, states=("waiting", "dead")))
    open_jobs = {str(one.state): one.jobs for one in counted}
    links = [
        Link("Certificates", "/"),
        Link("Jobs", "/jobs", count=sum(open_jobs.values()) or None, is_urgent=bool(open_jobs)),
        Link("Loops", "/loops"),
        Link("Found", "/found"),
    ]
    return pages.render(template, here=here, links=links, colours=_COLOURS, open_jobs=open_jobs, **values)


def span(value: timedelta) -> str:
    """A span in its largest whole unit: 30 s, 5 min, 6 h."""
    seconds = value.total_seconds()
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
