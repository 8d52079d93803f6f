"""`perdure jobs count`: how many jobs match."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.operate.desk import Desk
from perdure.storage.records import Tally
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.option_groups import EndFilters, JobFilters, with_option_groups
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns


class By(StrEnum):
    """The columns by which jobs are grouped."""

    KIND = "kind"
    STATE = "state"
    QUEUE = "queue"


Groups = Annotated[
    list[By] | None,
    typer.Option("--by", metavar="FIELD", help="Group by kind, state or queue; repeatable."),
]
Cap = Annotated[int, typer.Option("--cap", help="Read at most this many jobs of each queue and state.")]


@with_option_groups
def count(
    *,
    url: options.Url = None,
    by: Groups = None,
    cap: Cap = 10_000,
    filters: JobFilters,
    ends: EndFilters,
    as_json: options.Json = False,
) -> None:
    """Count the jobs that match.

    A + behind a number means: at least this many. Raise --cap to count more.
    """
    chosen = ends.narrow(filters.chosen())
    groups = [group.value for group in by or ()]

    async def look(desk: Desk) -> list[Tally]:
        which = await chosen.filter(desk)
        return await desk.count_by(*groups, which=which, cap=cap) if groups else [await desk.count(which, cap=cap)]

    tallies = with_desk(url, look)
    if as_json:
        print_json({"counts": [_document(tally, groups) for tally in tallies]})
    elif not groups:
        say(_number(tallies[0]))
    elif not tallies:
        say("No jobs.", "dim")
    else:
        _show(tallies, groups)


def _show(tallies: list[Tally], groups: list[str]) -> None:
    shown = [group for group in By if group in groups]
    table = columns(*(group.capitalize() for group in shown), "Jobs", giving_way={"Kind", "Queue"})
    for tally in tallies:
        table.add_row(*(cell(getattr(tally, group) or "") for group in shown), Text(_number(tally)))
    console().print(table)


def _number(tally: Tally) -> str:
    return f"{tally.jobs:,}{'+' if tally.capped else ''}"


def _document(tally: Tally, groups: list[str]) -> dict[str, Any]:
    """A tally as JSON, without the columns that were not requested."""
    return {name: value for name, value in plain(tally).items() if name not in frozenset(By) or name in groups}
