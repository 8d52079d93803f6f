"""Bulk commands on a terminal: a list, and one in full."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.condition import Condition
from perdure.domain.plain_records import plain
from perdure.storage.operate.bulk import BulkState, BulkView
from perdure.storage.records import JobFilter
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, say
from perdure.surfaces.cli.terminal.pieces import cell, columns, facts
from perdure.surfaces.cli.terminal.times import both, relative

_STYLE: Final = {
    BulkState.RUNNING: "bold green",
    BulkState.DONE: "green",
    BulkState.STOPPED: "yellow",
    BulkState.FAILED: "bold red",
}
_WIDE_FROM_COLUMNS: Final = 110


def bulk_table(found: Sequence[BulkView], now: datetime, *, width: int) -> Table:
    """A list of bulk commands, newest first; on a wide terminal with skipped jobs, actor and reason."""
    wide = width >= _WIDE_FROM_COLUMNS
    more = ("Skipped", "By", "From", "Why") if wide else ("By",)
    table = columns("ID", "Action", "State", "Done", "Started", *more, giving_way={"By", "From", "Why"})
    for view in found:
        rest = (
            Text(f"{view.skipped:,}"),
            cell(view.actor),
            cell(view.source or "", "dim"),
            cell(view.why or "", "dim"),
        )
        table.add_row(
            Text(view.id),
            Text(view.action),
            Text(view.state, style=_STYLE[view.state]),
            Text(f"{view.done:,}/{view.jobs:,}{'+' if view.capped else ''}"),
            Text(relative(view.created_at, now)),
            *(rest if wide else rest[1:2]),
        )
    return table


def show_bulk(view: BulkView, now: datetime) -> None:
    """One bulk command."""
    params = {name: value for name, value in plain(view.params).items() if value is not None}
    known = [
        ("state", Text(view.state, style=_STYLE[view.state])),
        ("jobs", Text(f"{view.jobs:,}{' or more' if view.capped else ''} matched, {view.seen:,} looked at")),
        ("done", Text(f"{view.done:,}")),
        ("skipped", Text(f"{view.skipped:,}")),
        ("filter", Text(one_line(_written(view.filter), 500))),
        *([("with", Text(one_line(str(params), 200)))] if params else []),
        ("by", Text(one_line(view.actor))),
        *([("why", Text(one_line(view.why, 500)))] if view.why else []),
        *([("from", Text(one_line(view.source)))] if view.source else []),
        ("started", Text(both(view.created_at, now))),
        *([("ended", Text(both(view.finished_at, now)))] if view.finished_at else []),
        *([("error", Text(one_line(view.error, 500), style="bold red"))] if view.error else []),
    ]
    say(f"{view.action}  {view.id}", "bold")
    console().print(facts(known))
    say_skipped(view)
    say(f"  perdure audit list --bulk {view.id}", "dim")


def _written(which: JobFilter) -> str:
    """A filter in words, as `state ready, running; kind mail; args.user.id=42`."""
    conditions = []
    for name, value in plain(which).items():
        if name == "states" and value:
            conditions.append(f"state {', '.join(state for state in JobState if state in value)}")
        elif name == "where":
            conditions += [_condition(condition) for condition in which.where]
        elif value not in (None, []):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            conditions.append(f"{name.replace('_', ' ')} {text}")
    return "; ".join(conditions) or "all jobs"


def _condition(condition: Condition) -> str:
    path = ".".join((condition.field, *condition.path))
    return f"has {path}" if condition.op == "exists" else f"{path}{condition.op}{condition.value}"


def say_skipped(view: BulkView) -> None:
    """Print why jobs were skipped, and the first of them."""
    for why, count in sorted(view.reasons.items(), key=lambda item: -item[1]):
        say(f"  {some(count, 'job')} skipped: {one_line(why, 300)}", "yellow")
        for sample in view.samples:
            if sample.why == why:
                say(f"    {sample.id}  {sample.state}", "dim")
