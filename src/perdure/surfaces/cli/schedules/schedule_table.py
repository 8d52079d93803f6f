"""Lists of schedules: when each runs next, and the outcome of its last time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from perdure.domain.duration import format_duration
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.schedule import Fate, Fire, Schedule, ScheduleView
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.operate.desk import Desk
from perdure.operate.desk_base import ROWS_PER_PAGE_LIMIT
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.cli.jobs.display.job_table import state_of
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say, unpacked
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import absolute, relative

Jobs = Mapping[JobId, JobView]

_FATE_STYLE: Final = {Fate.FIRED: "green", Fate.MISSED: "yellow", Fate.OVERLAPPED: "yellow"}
_LATE_AFTER: Final = timedelta(seconds=2)
_WIDE_FROM_COLUMNS: Final = 95
_POLICIES_FROM_COLUMNS: Final = 125
_GIVES_WAY: Final = {"Name", "Runs"}


async def jobs_of(desk: Desk, details: Sequence[ScheduleDetail]) -> Jobs:
    """The jobs of these schedules; pruned ones are missing."""
    ids = [fire.job_id for detail in details for fire in detail.fires if fire.job_id is not None]
    found: dict[JobId, JobView] = {}
    for start in range(0, len(ids), ROWS_PER_PAGE_LIMIT):
        page = await desk.jobs(
            JobFilter(ids=tuple(ids[start : start + ROWS_PER_PAGE_LIMIT])), Page(ROWS_PER_PAGE_LIMIT)
        )
        found |= {job.id: job for job in page.jobs}
    return found


def show_schedules(details: Sequence[ScheduleDetail], jobs: Jobs, now: datetime, *, as_json: bool) -> None:
    """Print a list of schedules."""
    if as_json:
        print_json({"schedules": [detail_document(detail, jobs) for detail in details]})
        return
    if not details:
        say("No schedules.", "dim")
        return
    out = console()
    out.print(_table(details, jobs, now, out.width))


def schedule_document(view: ScheduleView) -> dict[str, Any]:
    """A schedule as JSON, on one level: durations as options take them, arguments decoded."""
    document: dict[str, Any] = plain(view)
    schedule = view.schedule
    spans = {"within": format_duration(schedule.within), "jitter": format_duration(schedule.jitter)}
    return {**document.pop("schedule"), **spans, "args": unpacked(schedule.args), **document}


def detail_document(detail: ScheduleDetail, jobs: Jobs) -> dict[str, Any]:
    """A schedule as JSON, with its next and past times."""
    fires = [_fire_document(fire, jobs) for fire in detail.fires]
    times = {"upcoming": plain(detail.upcoming), "fires": fires, "unreadable": detail.unreadable}
    return {**schedule_document(detail.view), **times}


def _fire_document(fire: Fire, jobs: Jobs) -> dict[str, Any]:
    job = jobs.get(fire.job_id) if fire.job_id else None
    state, warnings = (None, []) if job is None else (job.state, plain(job.warnings))
    return {**plain(fire), "job_state": state, "job_warnings": warnings}


def runs(schedule: Schedule) -> str:
    """When it runs, as it was declared; the zone is left out if it is UTC or irrelevant."""
    plainly = schedule.tz == "UTC" or schedule.expression.startswith("@every")
    return schedule.expression if plainly else f"{schedule.expression}  {schedule.tz}"


def is_paused(view: ScheduleView, now: datetime) -> bool:
    """Whether it is paused now."""
    return view.paused_at is not None and (view.paused_until is None or view.paused_until > now)


def is_overdue(next_at: datetime, now: datetime) -> bool:
    """Whether a due time has not been handled, although a worker should have handled it by now."""
    return now - next_at > _LATE_AFTER


def became(fire: Fire, jobs: Jobs) -> Text:
    """The outcome of a nominal time: the state of its job, marked if it has warnings, or why there is none."""
    job = jobs.get(fire.job_id) if fire.job_id else None
    return Text(fire.fate, style=_FATE_STYLE[fire.fate]) if job is None else state_of(job)


def _table(details: Sequence[ScheduleDetail], jobs: Jobs, now: datetime, width: int) -> Table:
    policies = ("Overlap", "Missed") if width >= _POLICIES_FROM_COLUMNS else ()
    table = columns("Name", "Runs", "Next", "Last", *policies, giving_way=_GIVES_WAY)
    for detail in details:
        schedule = detail.view.schedule
        table.add_row(
            cell(schedule.name),
            cell(runs(schedule), "dim"),
            _next(detail, now, wide=width >= _WIDE_FROM_COLUMNS),
            _last(detail, jobs, now),
            *((Text(schedule.overlap), Text(schedule.missed)) if policies else ()),
        )
    return table


def _next(detail: ScheduleDetail, now: datetime, *, wide: bool) -> Text:
    view = detail.view
    if detail.unreadable is not None:
        return Text("cannot be read", style="bold red")
    if is_paused(view, now):
        if view.paused_until is None:
            return Text("paused", style="magenta")
        until = absolute(view.paused_until) if wide else relative(view.paused_until, now)
        return Text(f"paused until {until}" if wide else f"paused, {until}", style="magenta")
    if view.next_at is None:
        return Text("never", style="dim")
    when = _due(view.next_at, now)
    overdue = "yellow" if view.next_at < now else ""
    return Text(f"{absolute(view.next_at)}  ({when})" if wide else when, style=overdue)


def _due(next_at: datetime, now: datetime) -> str:
    when = relative(next_at, now)
    return f"due {when}" if is_overdue(next_at, now) else when


def _last(detail: ScheduleDetail, jobs: Jobs, now: datetime) -> Text:
    if not detail.fires:
        return Text("never", style="dim")
    fire = detail.fires[0]
    return Text.assemble(f"{relative(fire.nominal_at, now)}, ", became(fire, jobs))
