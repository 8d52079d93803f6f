"""`perdure jobs`: list jobs and act on them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.operate.commands.actions import CANCEL, DELETE, REQUEUE, RUN_NOW, Action, reschedule_to
from perdure.operate.desk import Desk
from perdure.operate.records import JobDetail, JobPage
from perdure.storage.records import Page
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.counting import count
from perdure.surfaces.cli.jobs.display.job_page import show_job
from perdure.surfaces.cli.jobs.display.job_table import show_page
from perdure.surfaces.cli.jobs.marking import mark
from perdure.surfaces.cli.jobs.option_groups import Care, EndFilters, JobFilters, with_option_groups
from perdure.surfaces.cli.jobs.why import why as why_not
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.times import read_time

jobs = typer.Typer(
    help="List and count jobs; cancel, requeue, run now, reschedule, mark or delete them.", no_args_is_help=True
)

_WHEN: Final = "When"
At = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="At this time, as 2026-03-01T09:00Z or +2h.", rich_help_panel=_WHEN),
]
In = Annotated[
    str | None, typer.Option("--in", metavar="SPAN", help="This long from now: 90s, 2h, 7d.", rich_help_panel=_WHEN)
]


@jobs.command("list")
@with_option_groups
def list_jobs(
    *,
    url: options.Url = None,
    filters: JobFilters,
    parent: options.Parent = None,
    ends: EndFilters,
    limit: options.PageLimit = 20,
    before: options.Before = None,
    page: options.PageNumber = None,
    as_json: options.Json = False,
) -> None:
    """List jobs, newest first."""
    chosen = ends.narrow(filters.chosen())
    wanted = Page(limit, before, page)

    async def look(desk: Desk) -> tuple[JobPage, datetime]:
        which = await chosen.filter(desk)
        if parent is not None:
            which = replace(which, ids=tuple(await desk.children(parent)))
        return await desk.jobs(which, wanted), await desk.now()

    show_page(*with_desk(url, look), as_json=as_json)


@jobs.command("show")
def show(
    job_id: options.JobId,
    url: options.Url = None,
    traceback: options.Traceback = False,
    lines: options.Lines = 20,
    as_json: options.Json = False,
) -> None:
    """Show one job in full, with its attempts and the end of its log."""

    async def look(desk: Desk) -> tuple[JobDetail, datetime]:
        return await desk.job(job_id, lines=lines), await desk.now()

    show_job(*with_desk(url, look), as_json=as_json, traceback=traceback)


jobs.command("why")(why_not)
jobs.command("count")(count)
jobs.command("mark")(mark)


@jobs.command("cancel")
@with_option_groups
def cancel(ids: options.JobIds = None, *, url: options.Url = None, filters: JobFilters, care: Care) -> None:
    """Cancel jobs.

    A job that is not running is cancelled at once; a running one is asked to stop.
    """
    care.order(CANCEL).carry_out(url, filters.chosen(ids, everything=care.everything))


@jobs.command("reschedule")
@with_option_groups
def reschedule(
    ids: options.JobIds = None,
    *,
    at: At = None,
    in_: In = None,
    url: options.Url = None,
    filters: JobFilters,
    care: Care,
) -> None:
    """Change when parked jobs come back.

    Parked jobs are scheduled, retrying, waiting or paused. Options without --state select scheduled jobs.
    """
    run_at = _another_time(at, in_)
    chosen = filters.chosen(ids, everything=care.everything)
    care.order(reschedule_to(run_at), run_at=run_at).carry_out(url, chosen)


def _another_time(at: str | None, in_: str | None) -> datetime | timedelta:
    if (at is None) is (in_ is None):
        raise ArgumentError("--at", "or --in must be given, and not both")
    if at is None:
        return parse_duration("--in", in_ or "")
    moment = read_time("--at", at)
    return moment.ahead if moment.at is None else moment.at


def _offer(name: str, action: Action, help_text: str) -> None:
    """Declare a command whose only options choose jobs."""

    @jobs.command(name, help=help_text)
    @with_option_groups
    def _(ids: options.JobIds = None, *, url: options.Url = None, filters: JobFilters, care: Care) -> None:
        care.order(action).carry_out(url, filters.chosen(ids, everything=care.everything))


_offer(
    "requeue",
    REQUEUE,
    "Requeue finished jobs.\n\nAll attempts are available again. Options without --state select dead jobs.",
)
_offer(
    "delete",
    DELETE,
    "Delete jobs with their history, for good.\n\nDeletes jobs in any state, and cancels unfinished children."
    " Options without --state select finished jobs.",
)
_offer(
    "run-now",
    RUN_NOW,
    "Run parked jobs now.\n\nParked jobs are scheduled, retrying, waiting or paused.",
)
