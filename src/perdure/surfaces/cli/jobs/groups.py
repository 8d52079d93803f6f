"""`perdure dead groups`: dead letters by error."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perdure.domain.plain_records import plain
from perdure.operate.desk import Desk
from perdure.operate.views.failure_groups import FailureGroup, GroupPage
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.filters import Chosen, age
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import NARROWEST_COLUMNS, console, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative

WIDE_FROM_COLUMNS: Final = 110
_BARS: Final = "▁▂▃▄▅▆▇█"
_NEW: Final = ("new", "bold yellow")
Before = Annotated[str | None, typer.Option("--before", metavar="PLACE", help="Continue where the last page ended.")]


def groups(
    *,
    url: options.Url = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    search: options.Search = None,
    where: options.Where = None,
    older_than: options.DiedBefore = None,
    finished_after: options.FinishedAfter = None,
    limit: options.PageLimit = 20,
    before: Before = None,
    as_json: options.Json = False,
) -> None:
    """Show dead letters by group: same kind and error, ignoring numbers and ids.

    The group that failed last comes first. The trend shows the deaths of the last 24 hours.
    """
    chosen = Chosen(
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        search=search,
        where=tuple(where or ()),
        older_than=age(older_than),
        by_death=True,
        finished_after=finished_after,
    )

    async def look(desk: Desk) -> tuple[GroupPage, datetime]:
        return await desk.failure_groups(await chosen.filter(desk), limit=limit, before=before), await desk.now()

    page, now = with_desk(url, look)
    if as_json:
        print_json(plain(page))
    else:
        _show(page, now)


def _show(page: GroupPage, now: datetime) -> None:
    if not page.groups:
        say("No dead letters.", "dim")
        return
    out = console()
    out.width = max(out.width, NARROWEST_COLUMNS)
    if out.width >= WIDE_FROM_COLUMNS:
        out.print(_table(page.groups, now))
    else:
        _print(out, page.groups, now)
    if page.only_newest is not None:
        looked = f"Only the newest {page.only_newest:,} dead letters that match were looked at"
        say(f"{looked}: a narrower search may show more groups.", "yellow")
    if page.next:
        say(f"More: --before {page.next}", "dim")
    say("Jobs of a group: perdure dead list --group FINGERPRINT", "dim")


def _table(shown: Sequence[FailureGroup], now: datetime) -> Table:
    table = columns("Group", "Dead", "Last 24 h", "First", "Last", "Kind", "Error", giving_way={"Kind", "Error"})
    for group in shown:
        first = Text(relative(group.first_at, now))
        if group.is_new:
            first = Text.assemble(_NEW, " ", first)
        table.add_row(
            Text(group.fingerprint),
            Text(_count(group)),
            Text(_trend(group)),
            first,
            Text(relative(group.last_at, now)),
            cell(group.kind),
            cell(_error(group), "red"),
        )
    return table


def _print(out: Console, shown: Sequence[FailureGroup], now: datetime) -> None:
    """On a narrow terminal the error gets its own line, because people look for it."""
    for group in shown:
        head = Text.assemble(
            group.fingerprint,
            "  ",
            (f"{_count(group)} dead", "bold"),
            f"  {one_line(group.kind)}  last {relative(group.last_at, now)}, ",
            _NEW if group.is_new else (f"first {relative(group.first_at, now)}", "dim"),
        )
        for line in (head, Text(f"  {one_line(_error(group))}", style="red")):
            line.truncate(out.width, overflow="ellipsis")
            out.print(line, no_wrap=True)


def _count(group: FailureGroup) -> str:
    return f"{group.jobs}{'+' if group.jobs_capped else ''}"


def _error(group: FailureGroup) -> str:
    return f"{group.error_type}: {group.message}" if group.error_type else group.message


def _trend(group: FailureGroup) -> str:
    """A bar for each hour; a dot for an hour without deaths."""
    most = max(group.trend)
    return "".join(_BARS[(count * len(_BARS) - 1) // most] if count else "·" for count in group.trend)
