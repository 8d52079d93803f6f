"""Schedules: in plain words, with next and past times; trigger, pause, backfill, delete, create and replace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import Response

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.schedule import Fire, Origin
from perdure.errors import ArgumentError, ConflictError, NotFoundError, PayloadError
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.operate.health.schedule_health import is_overdue
from perdure.operate.wording import some
from perdure.policy.schedules.words import words_or_expression
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.desk.pages.schedule_form import read_schedule, schedule_command, written_fields
from perdure.surfaces.desk.pages.schedule_list import CONDITIONS, chosen_schedules, is_paused
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.moments import read_moment
from perdure.surfaces.desk.visit import Visit

room = Room("schedules")
_TIMES_SHOWN: Final = 12
_JOBS_PER_CALL: Final = 500


class ScheduleRow(Struct, frozen=True, kw_only=True):
    """A schedule with its row's data; `last` is its last time, `last_job` that time's job, if it still exists."""

    detail: ScheduleDetail
    words: str
    is_late: bool
    is_paused: bool
    last: Fire | None = None
    last_job: JobView | None = None


class Backfill(Struct, frozen=True, kw_only=True):
    """The range of a backfill: how many times it has, or its error."""

    start: str
    end: str
    times: int | None = None
    problem: str = ""
    exact: tuple[str, str] = ("", "")


@room.page("/schedules")
async def schedules(visit: Visit) -> Response:
    """Schedules by name, in pages, or the form for one."""
    if visit.query("form"):
        return await _form(visit)
    details = await visit.shared("schedules", visit.desk.calendar.details)
    now = await visit.now()
    found = chosen_schedules(visit, details, now)
    jobs = await _jobs_of(visit, [fire for detail in found.shown for fire in detail.fires])
    return await visit.page(
        "pages/schedules/schedules.html",
        title="Schedules",
        now=now,
        schedules=[_row(detail, jobs, now) for detail in found.shown],
        found=found,
        conditions=CONDITIONS,
        next=visit.url("/schedules", found.given, after=found.next) if found.next else None,
        first=visit.url("/schedules", found.given) if visit.query("after") else None,
    )


@room.page("/schedules/{name:path}")
async def schedule(visit: Visit) -> Response:
    """One schedule: its definition, next and past times."""
    detail = await visit.desk.calendar.schedule(visit.path("name"), shown=_TIMES_SHOWN)
    now = await visit.now()
    jobs = await _jobs_of(visit, detail.fires)
    return await visit.page(
        "pages/schedules/schedule.html",
        title="Schedule",
        now=now,
        row=_row(detail, jobs, now),
        detail=detail,
        view=detail.view,
        jobs=jobs,
        backfill=await _preview(visit, detail, now),
        is_declared=detail.view.origin is Origin.DECLARED,
    )


@room.command("/schedules")
async def save(visit: Visit) -> Response:
    """Create a schedule, or replace one made at run time; errors are shown beside the form."""
    if visit.field("show"):
        return await _form(visit)
    try:
        made = await visit.desk.calendar.save(read_schedule(visit), why=visit.why)
    except (ArgumentError, PayloadError, ConflictError, NotFoundError) as error:
        return await _form(visit, error)
    verb = "created" if made.version == 1 else "replaced"
    return visit.done(f"Schedule {made.name} was {verb}.", back=_path(made.name))


@room.command("/schedules/{name:path}/trigger", confirm="Enqueue a job of {name} now?")
async def trigger(visit: Visit) -> Response:
    """Enqueue its job now."""
    fire = await visit.desk.calendar.trigger(visit.path("name"), why=visit.why)
    return visit.done(f"Enqueued job {fire.job_id}.", back=_path(visit.path("name")))


@room.command("/schedules/{name:path}/pause", confirm="Pause the schedule {name}?")
async def pause(visit: Visit) -> Response:
    """Pause it until it is resumed."""
    await visit.desk.calendar.pause(visit.path("name"), why=visit.why)
    return visit.done(f"Schedule {visit.path('name')} is paused.", back=_path(visit.path("name")))


@room.command("/schedules/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """Resume with its next time."""
    await visit.desk.calendar.resume(visit.path("name"), why=visit.why)
    return visit.done(f"Schedule {visit.path('name')} is resumed.", back=_path(visit.path("name")))


@room.command("/schedules/{name:path}/delete", confirm="Delete the schedule {name} and the record of its times?")
async def delete(visit: Visit) -> Response:
    """Delete it; its jobs stay."""
    await visit.desk.calendar.delete(visit.path("name"), why=visit.why)
    return visit.done(f"Schedule {visit.path('name')} was deleted.", back="/schedules")


@room.command("/schedules/{name:path}/backfill", confirm="Enqueue the jobs of past times of {name} that have none?")
async def backfill(visit: Visit) -> Response:
    """Enqueue the jobs of past times that have none."""
    name, now = visit.path("name"), await visit.desk.now()
    start, end = _range(visit.field("from"), visit.field("to"), now)
    fires = await visit.desk.calendar.backfill(name, start, end, why=visit.why)
    made = sum(fire.job_id is not None for fire in fires)
    return visit.done(f"Backfill of {name}: enqueued {some(made, 'job')}.", back=_path(name))


async def _form(visit: Visit, error: Exception | None = None) -> Response:
    """The form: empty, of an existing schedule, or as submitted with its error."""
    name = visit.query("name")
    view = (await visit.desk.calendar.schedule(name, shown=1)).view if name and error is None else None
    fields = written_fields(visit, view)
    return await visit.page(
        "pages/schedules/schedule_form.html",
        title="Schedule",
        status=200 if error is None else 409 if isinstance(error, ConflictError) else 422,
        fields=fields,
        cli_line=schedule_command(visit, fields),
        replaces=visit.field("replaces") or (view.name if view else ""),
        problem="" if error is None else str(error),
        wrong=error.field if isinstance(error, ArgumentError) else "",
        kinds=[] if visit.frame.kinds is None else sorted(visit.frame.kinds),
    )


async def _preview(visit: Visit, detail: ScheduleDetail, now: datetime) -> Backfill | None:
    start, end = visit.query("from"), visit.query("to")
    if not start and not end:
        return None
    try:
        first, last = _range(start, end, now)
        times = await visit.desk.calendar.nominal_times(detail.view.name, first, last)
    except ArgumentError as error:
        return Backfill(start=start, end=end, problem=str(error))
    return Backfill(start=start, end=end, times=len(times), exact=(first.isoformat(), last.isoformat()))


def _range(start: str, end: str, now: datetime) -> tuple[datetime, datetime]:
    first = read_moment("from", start, now)
    if first is None:
        raise ArgumentError("from", "is missing: write a span such as 7d, or a time such as 2026-01-31T09:00Z")
    return first, read_moment("to", end, now) or now


async def _jobs_of(visit: Visit, fires: Sequence[Fire]) -> dict[JobId, JobView]:
    ids = tuple(fire.job_id for fire in fires if fire.job_id is not None)[:_JOBS_PER_CALL]
    found = (await visit.desk.jobs(JobFilter(ids=ids), Page(len(ids)))).jobs if ids else ()
    return {job.id: job for job in found}


def _row(detail: ScheduleDetail, jobs: dict[JobId, JobView], now: datetime) -> ScheduleRow:
    view = detail.view
    last = detail.fires[0] if detail.fires else None
    return ScheduleRow(
        detail=detail,
        words=words_or_expression(view.schedule.expression, view.schedule.tz),
        is_late=is_overdue(view, now),
        is_paused=is_paused(view, now),
        last=last,
        last_job=jobs.get(last.job_id) if last is not None and last.job_id is not None else None,
    )


def _path(name: str) -> str:
    return f"/schedules/{quote(name, safe='')}"
