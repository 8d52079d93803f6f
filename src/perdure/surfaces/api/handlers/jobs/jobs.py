"""Jobs: lists, counts, and one job in full."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from perdure.domain.flows.flow import StepRecord
from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.log_lines import LogLine
from perdure.errors import ArgumentError
from perdure.operate.records import JobDetail, Why
from perdure.operate.views.job_views import MOST_LINES
from perdure.operate.views.retry_preview import RetryPreview, preview_of_job
from perdure.storage.records import JobFilter, Page, Tally
from perdure.surfaces.api.filters import Filter, read_cursor, write_cursor
from perdure.surfaces.api.handlers.trail import AuditList, AuditQuery, trail_page
from perdure.surfaces.api.history import JobEvent, history
from perdure.surfaces.api.problems import HttpError
from perdure.surfaces.api.revisions import job_etag
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Cap, Limit

_LINES: Final = 200


class JobsQuery(Filter, frozen=True, kw_only=True):
    """Which jobs, and which page of them."""

    limit: Limit = 50
    cursor: str | None = None


class CountQuery(Filter, frozen=True, kw_only=True):
    """Which jobs, in which groups; `cap` bounds how many are counted in each queue and state."""

    by: tuple[Literal["kind", "state", "queue"], ...] = ()
    cap: Cap = 10_000


class PageQuery(Given, frozen=True, kw_only=True):
    """Which page of a list."""

    limit: Limit = 50
    cursor: str | None = None


class LinesQuery(Given, frozen=True, kw_only=True):
    """How many of a job's newest log lines."""

    lines: Annotated[int, Meta(ge=0, le=MOST_LINES)] = _LINES


class PreviewQuery(Given, frozen=True, kw_only=True):
    """How many future attempts."""

    limit: Limit = 20


class JobList(Struct, frozen=True, kw_only=True):
    """A page of jobs, newest first. `next` is the `cursor` of the following page; null: this is the last.

    `searched_to`: the search had to scan jobs and reached its time limit there; `next` continues, even if `jobs` is
    empty.
    """

    jobs: tuple[JobView, ...]
    next: str | None = None
    searched_to: datetime | None = None


class Counts(Struct, frozen=True):
    """How many jobs match, in total or by group. `capped`: at least this many match."""

    counts: tuple[Tally, ...]


class Attempts(Struct, frozen=True):
    """All attempts of a job that did not succeed, oldest first, including those before a requeue."""

    attempts: tuple[Attempt, ...]


class Steps(Struct, frozen=True):
    """The steps of a job, in the order in which they began."""

    steps: tuple[StepRecord, ...]


class Children(Struct, frozen=True, kw_only=True):
    """A page of a job's children, in the order of spawning. `total` counts up to 10,000."""

    jobs: tuple[JobView, ...]
    total: int
    next: str | None = None


class Log(Struct, frozen=True):
    """The log lines of a job, oldest first."""

    lines: tuple[LogLine, ...]


class Costs(Struct, frozen=True):
    """What a job has spent from each budget in the last month."""

    costs: tuple[Cost, ...]


class JobEvents(Struct, frozen=True):
    """The history of a job, oldest first."""

    events: tuple[JobEvent, ...]


async def list_jobs(call: Call[JobsQuery, None]) -> JobList:
    """List jobs, newest first.

    Jobs are not counted, so a page costs the same for a list of any length. `limit` is at most 500.
    """
    query = call.query
    which = await query.read(call.desk)
    listed = ["jobs", query.conditions]
    page = Page(query.limit, read_cursor(listed, query.cursor))
    found = await call.desk.jobs(which, page)
    return JobList(jobs=found.jobs, next=write_cursor(listed, found.next), searched_to=found.searched_to)


async def count_jobs(call: Call[CountQuery, None]) -> Counts:
    """Count jobs, up to a cap.

    `by` groups them by kind, state or queue, or several of these.
    """
    query = call.query
    which = await query.read(call.desk)
    if query.by:
        return Counts(tuple(await call.desk.count_by(*query.by, which=which, cap=query.cap)))
    return Counts((await call.desk.count(which, cap=query.cap),))


async def show_job(call: Call[LinesQuery, None]) -> JobDetail:
    """Show a job with its attempts, children, steps, progress, log lines, costs and gates.

    `id` is the job's id or ref. The ETag changes with everything that a command could depend on: send it as If-Match.
    """
    detail = await call.desk.job(call.path["id"], lines=call.query.lines)
    call.headers["etag"] = job_etag(detail.job)
    return detail


async def list_attempts(call: Call[None, None]) -> Attempts:
    """List the attempts of a job that did not succeed, with their errors."""
    return Attempts((await call.desk.job(call.path["id"], lines=0)).attempts)


async def list_steps(call: Call[None, None]) -> Steps:
    """List the steps of a job."""
    return Steps((await call.desk.job(call.path["id"], lines=0)).steps)


async def list_children(call: Call[PageQuery, None]) -> Children:
    """List the children of a job."""
    ids = await call.desk.children(call.path["id"])
    listed = ["children", call.path["id"]]
    limit, place = call.query.limit, read_cursor(listed, call.query.cursor)
    if place is not None and not place.isdigit():
        raise ArgumentError("cursor", "is not a cursor of this list")
    first = int(place or 0)
    jobs = await _in_order(call, ids[first : first + limit])
    after = first + limit
    return Children(jobs=jobs, total=len(ids), next=write_cursor(listed, after if after < len(ids) else None))


async def show_log(call: Call[LinesQuery, None]) -> Log:
    """Show the newest log lines of a job."""
    return Log((await call.desk.job(call.path["id"], lines=call.query.lines)).lines)


async def show_costs(call: Call[None, None]) -> Costs:
    """Show what a job has spent from each budget."""
    return Costs((await call.desk.job(call.path["id"], lines=0)).costs)


async def list_job_events(call: Call[None, None]) -> JobEvents:
    """List the history of a job: enqueued, due, attempts, steps, commands, end."""
    detail = await call.desk.job(call.path["id"], lines=0)
    trail = await call.desk.audit(job=detail.job.id, limit=500)
    return JobEvents(tuple(history(detail, trail.entries)))


async def show_job_audit(call: Call[PageQuery, None]) -> AuditList:
    """List the audit trail of a job, newest first; entries outlive the job."""
    query = call.query
    return await trail_page(call.desk, AuditQuery(job=call.path["id"], limit=query.limit, cursor=query.cursor))


async def explain_job(call: Call[None, None]) -> Why:
    """Say why a job is not running, and what to do about it."""
    return await call.desk.why(call.path["id"])


async def preview_retries(call: Call[PreviewQuery, None]) -> RetryPreview:
    """Show when attempts run if all fail.

    Policies are in code: without the app, this works only for jobs with their own policy.
    """
    limit = call.query.limit
    job = (await call.desk.job(call.path["id"], lines=0)).job
    app = call.site.backing.app
    found = preview_of_job(None if app is None else app.kinds, job, await call.desk.now(), limit)
    if found is None:
        raise needs_app("the retry policy of this kind")
    return found


def needs_app(what: str) -> HttpError:
    """Refuse a request that only the app's code can answer."""
    advice = "serve the desk with `perdure up` or perdure.desk.asgi(app)"
    return HttpError(409, "no-app", f"{what} is in the app's code, which is not loaded here: {advice}")


async def _in_order(call: Call[PageQuery, None], ids: list[JobId]) -> tuple[JobView, ...]:
    if not ids:
        return ()
    page = await call.desk.jobs(JobFilter(ids=ids), Page(len(ids)))
    found = {job.id: job for job in page.jobs}
    return tuple(found[job_id] for job_id in ids if job_id in found)
