"""`perdure stats`: count jobs by queue, kind and state; with --span, show the outcomes of recent attempts.

Counts are capped, and workers write the sums of the statistics, so it is quick on any database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.records import Overview
from perdure.operate.views.statistics import Grouping
from perdure.storage.records import JobFilter, Tally
from perdure.surfaces.cli import options
from perdure.surfaces.cli.database.rates import print_rates, rates_document, read_rates
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


Span = Annotated[
    str | None,
    typer.Option("--span", metavar="SPAN", help="Rates, failures, waits and run times of the last 1h, 1d, 7d, …"),
]
GroupBy = Annotated[Grouping | None, typer.Option("--by", help="With --span: by queue or by kind only.")]


def stats(
    span: Span = None,
    by: GroupBy = None,
    queue: options.QueueName = None,
    kind: options.KindName = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Count jobs by queue, kind and state; with --span, show rates, failures, waits and run times.

    At most 10,000 jobs are counted in each queue and state; a plus sign means that there are more.
    """
    if span is not None:
        rates = with_desk(url, lambda desk: read_rates(desk, span, by, queue, kind))
        if as_json:
            print_json(rates_document(rates))
        else:
            print_rates(rates)
        return
    for option, given in (("--by", by), ("--queue", queue), ("--kind", kind)):
        if given is not None:
            raise ArgumentError(option, "needs --span, as in --span 1h")

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
    """One row for each name; only states that have jobs get a column."""
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
