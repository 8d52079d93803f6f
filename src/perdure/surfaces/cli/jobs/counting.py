"""`perdure jobs count`: how many jobs match."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.operate.desk import Desk
from perdure.storage.records import Tally
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.filters import Chosen, age
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns


class By(StrEnum):
    """What jobs are grouped by."""

    KIND = "kind"
    STATE = "state"
    QUEUE = "queue"


Groups = Annotated[
    list[By] | None,
    typer.Option("--by", metavar="FIELD", help="By kind, state or queue; may be given several times."),
]
Cap = Annotated[int, typer.Option("--cap", help="Look at most at so many jobs of each queue and state.")]


def count(
    *,
    url: options.Url = None,
    by: Groups = None,
    cap: Cap = 10_000,
    state: options.States = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.CreatedBefore = None,
    finished_after: options.FinishedAfter = None,
    finished_before: options.FinishedBefore = None,
    mark: options.Mark = None,
    unmarked: options.Unmarked = False,
    as_json: options.Json = False,
) -> None:
    """Count the jobs that match.

    A number with a + is at least so large: there are more jobs than --cap allows to look at.
    """
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
    """A tally as JSON, without what it was not asked by."""
    return {name: value for name, value in plain(tally).items() if name not in frozenset(By) or name in groups}
