"""`perdure stats`: how many jobs stand where. Counts are capped, so that it is quick on a database of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.operate.records import Overview
from perdure.storage.records import JobFilter, Tally
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.output import STATE_STYLE, console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns

_ORDER: Final = {state.value: place for place, state in enumerate(JobState)}


class Stats(Struct, frozen=True):
    """The counts by queue and by kind."""

    overview: Overview
    kinds: list[Tally]


class Row(Struct, frozen=True):
    """How many jobs of one queue or kind are in one state."""

    name: str
    state: str
    jobs: int
    capped: bool


def stats(url: options.Url = None, as_json: options.Json = False) -> None:
    """Count jobs by queue, kind and state.

    At most 10,000 are counted in each queue and state; a plus sign means that there are more.
    """

    async def look(desk: Desk) -> Stats:
        return Stats(await desk.overview(), await desk.count_by("kind", "state", which=JobFilter()))

    found = with_desk(url, look)
    overview = found.overview
    living = sum(worker.dead_at is None for worker in overview.workers)
    if as_json:
        queues = sorted(overview.counts, key=lambda count: (count.queue, count.state))
        kinds = [
            {"kind": tally.kind, "state": tally.state, "jobs": tally.jobs, "capped": tally.capped}
            for tally in sorted(found.kinds, key=lambda tally: (tally.kind or "", tally.state or ""))
        ]
        print_json({"at": plain(overview.at), "queues": plain(queues), "kinds": kinds, "workers": living})
    elif overview.counts:
        console().print(_table("Queue", [Row(one.queue, one.state, one.jobs, one.capped) for one in overview.counts]))
        say("")
        rows = [Row(one.kind or "", str(one.state), one.jobs, one.capped) for one in found.kinds]
        console().print(_table("Kind", rows))
        say("")
        say(f"{living} worker{'' if living == 1 else 's'} alive.", "dim")
    else:
        say("No jobs.", "dim")


def _table(title: str, rows: Sequence[Row]) -> Table:
    """One row for each name; only states in which there are jobs have a column."""
    states = sorted({row.state for row in rows}, key=lambda state: _ORDER.get(state, len(_ORDER)))
    table = columns(title, *states, giving_way={title})
    for name in sorted({row.name for row in rows}):
        here = {row.state: row for row in rows if row.name == name}
        table.add_row(cell(name), *(_number(here.get(state)) for state in states))
    return table


def _number(row: Row | None) -> Text:
    if row is None:
        return Text("")
    return Text(f"{row.jobs:,}{'+' if row.capped else ''}", style=STATE_STYLE.get(row.state, ""))
