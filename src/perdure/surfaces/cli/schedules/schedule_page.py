"""One schedule in full, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from rich.table import Table
from rich.text import Text

from perdure.domain.duration import format_duration
from perdure.domain.schedule import Origin, ScheduleView
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.surfaces.cli.schedules.schedule_table import Jobs, became, detail_document, is_overdue, is_paused, runs
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, print_json
from perdure.surfaces.cli.terminal.pieces import cell, columns, document, facts, section
from perdure.surfaces.cli.terminal.times import absolute, both, relative

_WIDE_FROM_COLUMNS: Final = 95


def show_schedule(detail: ScheduleDetail, jobs: Jobs, now: datetime, *, as_json: bool) -> None:
    """Print a schedule with its next and past times."""
    if as_json:
        print_json({"schedule": detail_document(detail, jobs)})
        return
    out = console()
    out.print(_headline(detail, now))
    out.print(facts(_fact_list(detail.view, now)))
    if detail.view.schedule.args != "{}":
        out.print(section("Arguments", document(detail.view.schedule.args)))
    if detail.upcoming:
        out.print(section("Next times", _coming(detail, now)))
    if detail.fires:
        out.print(section("Last times", _passed(detail, jobs, now, out.width)))


def _headline(detail: ScheduleDetail, now: datetime) -> Text:
    view = detail.view
    name = (one_line(view.name), "bold")
    if detail.unreadable is not None:
        return Text.assemble(name, "  ", ("CANNOT BE READ", "bold red"), f"  {one_line(detail.unreadable)}")
    if is_paused(view, now):
        until = f"  until {both(view.paused_until, now)}" if view.paused_until else "  until it is resumed"
        return Text.assemble(name, "  ", ("PAUSED", "magenta"), until)
    if view.next_at is None:
        return Text.assemble(name, "  no future time")
    if is_overdue(view.next_at, now):
        return Text.assemble(name, "  ", (f"due {relative(view.next_at, now)}", "yellow"), ", no worker has handled it")
    return Text.assemble(name, f"  next {relative(view.next_at, now)}")


def _fact_list(view: ScheduleView, now: datetime) -> Iterator[tuple[str, Text]]:
    schedule = view.schedule
    yield "runs", Text(one_line(runs(schedule)))
    yield "kind", Text(one_line(schedule.kind))
    yield "queue", Text(f"{one_line(schedule.queue)}, priority {schedule.priority}")
    yield "missed", Text(f"{schedule.missed}, within {format_duration(schedule.within)}")
    yield "overlap", Text(schedule.overlap)
    if schedule.jitter:
        yield "jitter", Text(f"up to {format_duration(schedule.jitter)}")
    yield "origin", Text(_origin(view, now))
    yield "created", Text(both(view.created_at, now))
    if view.version > 1:
        yield "changed", Text(both(view.changed_at, now))


def _origin(view: ScheduleView, now: datetime) -> str:
    if view.origin is Origin.MADE:
        return "made at run time"
    return "declared in code" + (f", last {relative(view.declared_at, now)}" if view.declared_at else "")


def _coming(detail: ScheduleDetail, now: datetime) -> Table:
    """The next times in UTC, and in the schedule's zone if that differs."""
    schedule = detail.view.schedule
    tz = "UTC" if schedule.expression.startswith("@every") else schedule.tz  # an interval has no zone
    zone = None if tz == "UTC" else ZoneInfo(tz)  # readable, because there is a next time
    table = columns("Time", "", *([] if zone is None else [one_line(tz)]))
    for time in detail.upcoming:
        there = [] if zone is None else [Text(time.astimezone(zone).strftime("%a %H:%M:%S %Z"))]
        table.add_row(Text(absolute(time)), Text(relative(time, now)), *there)
    return table


def _passed(detail: ScheduleDetail, jobs: Jobs, now: datetime, width: int) -> Table:
    """The past times. Their age is shown if there is room; times and ids are never cut, so that they can be copied."""
    wide = width >= _WIDE_FROM_COLUMNS
    table = columns("Time", *([""] if wide else []), "Became", "Cause", "Job", giving_way={"Cause"})
    for fire in detail.fires:
        ago = [Text(relative(fire.nominal_at, now))] if wide else []
        table.add_row(
            Text(absolute(fire.nominal_at)), *ago, became(fire, jobs), cell(fire.cause), Text(fire.job_id or "")
        )
    return table
