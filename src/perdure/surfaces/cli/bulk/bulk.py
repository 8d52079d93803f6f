"""`perdure bulk`: the progress of commands on all jobs that match a filter."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from perdure.operate.bulk.records import BulkPage
from perdure.operate.desk import Desk
from perdure.storage.operate.bulk import BulkView
from perdure.surfaces.cli import options
from perdure.surfaces.cli.bulk.bulk_page import bulk_table, show_bulk
from perdure.surfaces.cli.completion import complete_bulk
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say

bulk = typer.Typer(help="List bulk commands, show one, or stop it.", no_args_is_help=True)

BulkId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id of the bulk command.", show_default=False, autocompletion=complete_bulk),
]
Limit = Annotated[int, typer.Option("--limit", help="At most this many.")]
Before = Annotated[
    str | None,
    typer.Option(
        "--before", metavar="ID", help="Continue with those started before this one.", autocompletion=complete_bulk
    ),
]


@bulk.command("list")
def list_bulks(
    url: options.Url = None, limit: Limit = 20, before: Before = None, as_json: options.Json = False
) -> None:
    """List bulk commands, newest first."""

    async def look(desk: Desk) -> tuple[BulkPage, datetime]:
        return await desk.bulks(limit, before), await desk.now()

    page, now = with_desk(url, look)
    if as_json:
        print_json({"bulks": plain(page.bulks), "next": page.next})
        return
    if page.bulks:
        out = console()
        out.print(bulk_table(page.bulks, now, width=out.width))
    else:
        say("No bulk commands.", "dim")
    if page.next is not None:
        say(f"More: --before {page.next}", "dim")


@bulk.command("show")
def show(bulk_id: BulkId, url: options.Url = None, as_json: options.Json = False) -> None:
    """Show a bulk command: how far it is, and which jobs it skipped and why."""

    async def look(desk: Desk) -> tuple[BulkView, datetime]:
        return await desk.bulk(bulk_id), await desk.now()

    view, now = with_desk(url, look)
    if as_json:
        print_json({"bulk": plain(view)})
    else:
        show_bulk(view, now)


@bulk.command("stop")
def stop(bulk_id: BulkId, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Stop a bulk command after its current batch.

    Finished batches stay.
    """
    view = with_desk(url, lambda desk: desk.stop_bulk(bulk_id, why=why))
    if as_json:
        print_json({"action": "stopped", "bulk": plain(view)})
    else:
        say(f"Bulk command {view.id} stopped: {some(view.done, 'job')} of {view.jobs:,} done.", "bold")
