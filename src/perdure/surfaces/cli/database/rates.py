"""The tables of `perdure stats --span`: outcomes of recent attempts, how long jobs waited, and how long they ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from perdure.domain.duration import format_duration
from perdure.domain.operate.statistics import BOUNDS, Group, Percentiles, Point, Statistics
from perdure.operate.desk import Desk
from perdure.operate.views.statistics import Grouping
from perdure.surfaces.cli.terminal.output import console, plain, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import took

_MINUTE: Final = timedelta(minutes=1)
_BAD_SHARE: Final = 0.05


class Rates(Struct, frozen=True):
    """Outcomes of attempts in total, and for each requested queue and kind."""

    total: Statistics
    tables: tuple[tuple[Grouping, Statistics], ...]


async def read_rates(desk: Desk, span: str, by: Grouping | None, queue: str | None, kind: str | None) -> Rates:
    """Read them from the desk."""
    ways: tuple[Grouping, ...] = ("queue", "kind") if by is None else (by,)
    total = await desk.statistics(span, queue=queue, kind=kind, points=False)
    tables = [(way, await desk.statistics(span, by=way, queue=queue, kind=kind, points=False)) for way in ways]
    return Rates(total, tuple(tables))


def rates_document(rates: Rates) -> dict[str, Any]:
    """The JSON document."""
    total = rates.total
    return {
        "since": plain(total.since),
        "until": plain(total.until),
        "total": _facts(total.groups[0].total),
        **{
            f"{way}s": [{way: getattr(group, way), **_facts(group.total)} for group in found.groups]
            for way, found in rates.tables
        },
    }


def print_rates(rates: Rates) -> None:
    """Print the tables, busiest first."""
    whole = rates.total.groups[0].total
    span = rates.total.until - rates.total.since
    if not whole.attempts and not whole.held:
        say(f"No attempts in the last {format_duration(span)}.", "dim")
        return
    for way, found in rates.tables:
        console().print(_table(way, found.groups, span))
        say("")
    share = "" if whole.failure_share is None else f", {_percent(whole.failure_share)} of the attempts failed"
    say(f"{whole.finished:,} jobs finished in the last {format_duration(span)}{share}.", "dim")


def _table(way: Grouping, groups: Sequence[Group], span: timedelta) -> Table:
    title = way.capitalize()
    numbers = ("Done", "/min", "Failed", "Share", "Held", "Wait p50", "p95", "Run p50", "p95")
    table = columns(title, *numbers, giving_way={title})
    for column in table.columns[1:]:
        column.justify = "right"
    for group in sorted(groups, key=lambda group: -(group.total.attempts + group.total.held)):
        total = group.total
        table.add_row(
            cell(getattr(group, way) or ""),
            f"{total.finished:,}",
            _rate(total.finished * (_MINUTE / span)),
            Text(f"{total.failed:,}" if total.failed else "", style="red"),
            _share(total.failure_share),
            f"{total.held:,}" if total.held else "",
            *_times(total.wait),
            *_times(total.run),
        )
    return table


def _facts(point: Point) -> dict[str, Any]:
    counted: dict[str, Any] = plain(point)
    del counted["at"]
    share = point.failure_share
    return counted | {"finished": point.finished, "failed": point.failed, "failure_share": share}


def _rate(per_minute: float) -> str:
    return f"{per_minute:,.0f}" if per_minute >= 10 else f"{per_minute:.2g}"  # noqa: PLR2004 - two digits are enough


def _share(share: float | None) -> Text:
    if not share:
        return Text("")
    return Text(_percent(share), style="bold red" if share >= _BAD_SHARE else "yellow")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _times(times: Percentiles) -> tuple[str, str]:
    return _time(times.p50), _time(times.p95)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{took(timedelta(seconds=seconds))}{'+' if seconds >= BOUNDS[-1] else ''}"
