"""`perdure stats`: how many jobs stand where. Counts are capped, so that it is quick on a database of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from perdure.domain.states import JobState
from perdure.operate.desk import Desk
from perdure.operate.records import Overview
from perdure.storage.records import Count
from perdure.surfaces.cli import options
from perdure.surfaces.cli.output import STATE_STYLE, console, plain, print_json, say
from perdure.surfaces.cli.pieces import cell, columns
from perdure.surfaces.cli.session import with_desk

_ORDER: Final = {state: place for place, state in enumerate(JobState)}


def stats(url: options.Url = None, as_json: options.Json = False) -> None:
    """Count jobs by queue and state.

    At most 10,000 are counted for each; a plus sign means that there are more.
    """

    async def look(desk: Desk) -> Overview:
        return await desk.overview()

    overview = with_desk(url, look)
    living = sum(worker.dead_at is None for worker in overview.workers)
    if as_json:
        queues = sorted(overview.counts, key=lambda count: (count.queue, count.state))
        print_json({"at": plain(overview.at), "queues": plain(queues), "workers": living})
    elif overview.counts:
        console().print(_table(overview.counts))
        say(f"{living} living worker{'' if living == 1 else 's'}.", "dim")
    else:
        say("No jobs.", "dim")


def _table(counts: Sequence[Count]) -> Table:
    """One row for each queue; only states in which there are jobs have a column."""
    states = sorted({count.state for count in counts}, key=lambda state: _ORDER.get(state, len(_ORDER)))
    table = columns("Queue", *(str(state) for state in states), giving_way={"Queue"})
    for queue in sorted({count.queue for count in counts}):
        here = {count.state: count for count in counts if count.queue == queue}
        table.add_row(cell(queue), *(_number(here.get(state), state) for state in states))
    return table


def _number(count: Count | None, state: str) -> Text:
    if count is None:
        return Text("")
    return Text(f"{count.jobs:,}{'+' if count.capped else ''}", style=STATE_STYLE.get(state, ""))
