"""`perdure jobs`: look at jobs and act on them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.operate.commands.actions import CANCEL, DELETE, REQUEUE, RUN_NOW, Action, reschedule_to
from perdure.operate.desk import MOST_AT_ONCE, Desk
from perdure.operate.records import JobDetail, JobPage
from perdure.storage.records import Page
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.acting import Order
from perdure.surfaces.cli.jobs.counting import count
from perdure.surfaces.cli.jobs.display.job_page import show_job
from perdure.surfaces.cli.jobs.display.job_table import show_page
from perdure.surfaces.cli.jobs.filters import Chosen, age
from perdure.surfaces.cli.jobs.why import why as why_not
from perdure.surfaces.cli.marking import mark
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.times import read_time

jobs = typer.Typer(
    help="Look at jobs, count them, and cancel, requeue, hurry, put off, mark or delete them.", no_args_is_help=True
)

_WHEN: Final = "When"
At = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="At this time, as 2026-03-01T09:00Z or +2h.", rich_help_panel=_WHEN),
]
In = Annotated[
    str | None, typer.Option("--in", metavar="SPAN", help="So much from now, as 90s, 2h, 7d.", rich_help_panel=_WHEN)
]
Why = Annotated[str, typer.Option("--why", help="The reason, kept with the job and in the audit trail.")]


@jobs.command("list")
def list_jobs(
    *,
    url: options.Url = None,
    state: options.States = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.CreatedBefore = None,
    parent: options.Parent = None,
    finished_after: options.FinishedAfter = None,
    finished_before: options.FinishedBefore = None,
    mark: options.Mark = None,
    unmarked: options.Unmarked = False,
    limit: options.PageLimit = 20,
    before: options.Before = None,
    page: options.PageNumber = None,
    as_json: options.Json = False,
) -> None:
    """List jobs, newest first."""
    chosen = Chosen(
        states=tuple(state or ()),
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        older_than=age(older_than),
        finished_after=finished_after,
        finished_before=finished_before,
        mark=mark,
        unmarked=unmarked,
    )
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
    """Show all about one job, with its attempts and the end of its log."""

    async def look(desk: Desk) -> tuple[JobDetail, datetime]:
        return await desk.job(job_id, lines=lines), await desk.now()

    show_job(*with_desk(url, look), as_json=as_json, traceback=traceback)


jobs.command("why")(why_not)
jobs.command("count")(count)
jobs.command("mark")(mark)


@jobs.command("cancel")
def cancel(
    ids: options.JobIds = None,
    *,
    url: options.Url = None,
    why: Why = "",
    state: options.States = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.CreatedBefore = None,
    everything: options.All = False,
    limit: options.CommandLimit = MOST_AT_ONCE,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Call jobs off.

    At once if nobody works on them; a running one is asked to stop.
    """
    chosen = Chosen(
        ids=tuple(ids or ()),
        states=tuple(state or ()),
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        older_than=age(older_than),
        everything=everything,
    )
    order = Order(action=CANCEL, as_json=as_json, yes=yes, dry_run=dry_run, limit=limit, why=why)
    order.carry_out(url, chosen)


@jobs.command("reschedule")
def reschedule(
    ids: options.JobIds = None,
    *,
    at: At = None,
    in_: In = None,
    url: options.Url = None,
    state: options.States = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.CreatedBefore = None,
    everything: options.All = False,
    limit: options.CommandLimit = MOST_AT_ONCE,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Give parked jobs another time to come back at.

    Parked are scheduled, retrying, waiting and paused ones. Options without --state mean scheduled jobs.
    """
    action = reschedule_to(_another_time(at, in_))
    chosen = Chosen(
        ids=tuple(ids or ()),
        states=tuple(state or ()),
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        older_than=age(older_than),
        everything=everything,
    )
    Order(action=action, as_json=as_json, yes=yes, dry_run=dry_run, limit=limit).carry_out(url, chosen)


def _another_time(at: str | None, in_: str | None) -> datetime | timedelta:
    if (at is None) is (in_ is None):
        raise ArgumentError("--at", "or --in must be given, and not both")
    if at is None:
        return parse_duration("--in", in_ or "")
    moment = read_time("--at", at)
    return moment.ahead if moment.at is None else moment.at


def _offer(name: str, action: Action, help_text: str) -> None:
    """Declare a command that needs no word but which jobs are meant."""

    @jobs.command(name, help=help_text)
    def _(
        ids: options.JobIds = None,
        *,
        url: options.Url = None,
        state: options.States = None,
        kind: options.KindName = None,
        queue: options.QueueName = None,
        tag: options.Tag = None,
        error: options.ErrorText = None,
        older_than: options.CreatedBefore = None,
        everything: options.All = False,
        limit: options.CommandLimit = MOST_AT_ONCE,
        yes: options.Yes = False,
        dry_run: options.DryRun = False,
        as_json: options.Json = False,
    ) -> None:
        chosen = Chosen(
            ids=tuple(ids or ()),
            states=tuple(state or ()),
            kind=kind,
            queue=queue,
            tag=tag,
            error=error,
            older_than=age(older_than),
            everything=everything,
        )
        Order(action=action, as_json=as_json, yes=yes, dry_run=dry_run, limit=limit).carry_out(url, chosen)


_offer(
    "requeue",
    REQUEUE,
    "Give finished jobs a new life.\n\nWith all their attempts. Options without --state mean dead jobs.",
)
_offer(
    "delete",
    DELETE,
    "Forget jobs with their history, for good.\n\nWhatever their state: children that are not final are cancelled."
    " Options without --state mean finished jobs.",
)
_offer(
    "run-now",
    RUN_NOW,
    "Let parked jobs run without waiting.\n\nParked are scheduled, retrying, waiting and paused ones.",
)
