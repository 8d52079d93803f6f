"""`perdure dead`: the dead letters."""

from __future__ import annotations

from datetime import datetime

import typer

from perdure.domain.jobs.states import JobState
from perdure.errors import NotFoundError
from perdure.operate.commands.actions import PURGE_DEAD, REQUEUE_DEAD, Action
from perdure.operate.desk import Desk
from perdure.operate.records import JobDetail, JobPage
from perdure.storage.records import Page
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.display.job_page import show_job
from perdure.surfaces.cli.jobs.display.job_table import show_page
from perdure.surfaces.cli.jobs.groups import groups
from perdure.surfaces.cli.jobs.option_groups import Care, DeadFilters, with_option_groups
from perdure.surfaces.cli.session import with_desk

dead = typer.Typer(help="List dead letters, requeue or purge them.", no_args_is_help=True)


@dead.command("list")
@with_option_groups
def list_dead(
    *,
    url: options.Url = None,
    filters: DeadFilters,
    limit: options.PageLimit = 20,
    before: options.Before = None,
    page: options.PageNumber = None,
    as_json: options.Json = False,
) -> None:
    """List dead letters, newest first."""
    chosen = filters.chosen()
    wanted = Page(limit, before, page)

    async def look(desk: Desk) -> tuple[JobPage, datetime]:
        return await desk.dead_letters(await chosen.filter(desk), wanted), await desk.now()

    show_page(*with_desk(url, look), as_json=as_json, dead=True)


dead.command("groups")(groups)


@dead.command("show")
def show(
    job_id: options.JobId, url: options.Url = None, traceback: options.Traceback = False, as_json: options.Json = False
) -> None:
    """Show one dead letter in full, with its attempts."""

    async def look(desk: Desk) -> tuple[JobDetail, datetime]:
        detail = await desk.job(job_id, lines=20)
        if detail.job.state is not JobState.DEAD:
            raise NotFoundError(
                f"job {detail.job.id} is not a dead letter, it is {detail.job.state}: see `perdure jobs show`"
            )
        return detail, await desk.now()

    show_job(*with_desk(url, look), as_json=as_json, traceback=traceback)


def _offer(name: str, action: Action, help_text: str) -> None:
    @dead.command(name, help=help_text)
    @with_option_groups
    def _(ids: options.JobIds = None, *, url: options.Url = None, filters: DeadFilters, care: Care) -> None:
        care.order(action).carry_out(url, filters.chosen(ids, everything=care.everything))


_offer("requeue", REQUEUE_DEAD, "Requeue dead letters, with all attempts available again.")
_offer("purge", PURGE_DEAD, "Delete dead letters with their history, for good.")
