"""`perdure dead`: the dead letters."""

from __future__ import annotations

from datetime import datetime

import typer

from perdure.domain.jobs.states import JobState
from perdure.errors import NotFoundError
from perdure.operate.commands.actions import PURGE_DEAD, REQUEUE_DEAD, Action
from perdure.operate.desk import MOST_AT_ONCE, Desk
from perdure.operate.records import JobDetail, JobPage
from perdure.storage.records import Page
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.acting import Order
from perdure.surfaces.cli.jobs.display.job_page import show_job
from perdure.surfaces.cli.jobs.display.job_table import show_page
from perdure.surfaces.cli.jobs.filters import Chosen, age
from perdure.surfaces.cli.session import with_desk

dead = typer.Typer(help="Look at dead letters, and requeue or purge them.", no_args_is_help=True)


@dead.command("list")
def list_dead(
    *,
    url: options.Url = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.DiedBefore = None,
    finished_after: options.FinishedAfter = None,
    mark: options.Mark = None,
    unmarked: options.Unmarked = False,
    limit: options.PageLimit = 20,
    before: options.Before = None,
    page: options.PageNumber = None,
    as_json: options.Json = False,
) -> None:
    """List dead letters, newest first."""
    chosen = Chosen(
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        older_than=age(older_than),
        by_death=True,
        finished_after=finished_after,
        mark=mark,
        unmarked=unmarked,
    )
    wanted = Page(limit, before, page)

    async def look(desk: Desk) -> tuple[JobPage, datetime]:
        return await desk.dead_letters(await chosen.filter(desk), wanted), await desk.now()

    show_page(*with_desk(url, look), as_json=as_json, dead=True)


@dead.command("show")
def show(
    job_id: options.JobId, url: options.Url = None, traceback: options.Traceback = False, as_json: options.Json = False
) -> None:
    """Show all about one dead letter, with its attempts."""

    async def look(desk: Desk) -> tuple[JobDetail, datetime]:
        detail = await desk.job(job_id, lines=20)
        if detail.job.state is not JobState.DEAD:
            raise NotFoundError(
                f"job {detail.job.id} is no dead letter, it is {detail.job.state}: see `perdure jobs show`"
            )
        return detail, await desk.now()

    show_job(*with_desk(url, look), as_json=as_json, traceback=traceback)


def _offer(name: str, action: Action, help_text: str) -> None:
    @dead.command(name, help=help_text)
    def _(
        ids: options.JobIds = None,
        *,
        url: options.Url = None,
        kind: options.KindName = None,
        queue: options.QueueName = None,
        tag: options.Tag = None,
        error: options.ErrorText = None,
        older_than: options.DiedBefore = None,
        finished_after: options.FinishedAfter = None,
        mark: options.Mark = None,
        unmarked: options.Unmarked = False,
        everything: options.All = False,
        limit: options.CommandLimit = MOST_AT_ONCE,
        yes: options.Yes = False,
        dry_run: options.DryRun = False,
        as_json: options.Json = False,
    ) -> None:
        chosen = Chosen(
            ids=tuple(ids or ()),
            kind=kind,
            queue=queue,
            tag=tag,
            error=error,
            older_than=age(older_than),
            by_death=True,
            finished_after=finished_after,
            mark=mark,
            unmarked=unmarked,
            everything=everything,
        )
        Order(action=action, as_json=as_json, yes=yes, dry_run=dry_run, limit=limit).carry_out(url, chosen)


_offer("requeue", REQUEUE_DEAD, "Give dead letters a new life, with all their attempts.")
_offer("purge", PURGE_DEAD, "Delete dead letters with their history, for good.")
