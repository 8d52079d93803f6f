"""The lines above the list: where we are, the figures of the span, and what needs a person."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from rich.text import Text

from perdure.storage.operate.diagnosis import Severity
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.times import absolute
from perdure.surfaces.top.figures import count, rate, seconds, share, sparkline
from perdure.surfaces.top.look import Look
from perdure.surfaces.top.tables import LISTS, span_seconds

_NEEDS_SHOWN: Final = 5
_WIDE: Final = 120
_TREND_WIDTH: Final = 12
KEYS: Final = (
    "1 2 3 4, Tab   queues, workers, dead letters, kinds",
    "↑ ↓            choose a row",
    "Enter          explain the row, with the command that does the same",
    "s              span: last hour, day, week",
    "p              pause or resume a queue or kind",
    "u              tell a worker to stop claiming, or to claim again",
    "o              requeue one dead letter of a group as a probe",
    "r              requeue a whole group, after a dry run",
    "q              quit",
)


def title(database: str, look: Look, away_since: datetime | None, width: int) -> Text:
    """The first line."""
    line = Text.assemble(("✿ perdure", "bold green"), "  ", one_line(database))
    mark = Text.assemble(("last ", "dim"), look.span, "  ", (absolute(look.at), "dim"), "  ")
    if away_since is None:
        mark.append("● live", style="green")
    else:
        mark.append(f"○ away since {away_since:%H:%M:%S}", style="bold red")
    room = max(width - 4 - mark.cell_len, 10)
    line.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble(line, "  ", mark)


def figures(look: Look, width: int) -> Text:
    """Throughput, failures, wait and slots of the span."""
    total = look.total.total
    failed = total.failure_share
    parts = [
        Text.assemble(("finished ", "dim"), (rate(total.finished, span_seconds(look.span)), "bold")),
        Text.assemble(("failed ", "dim"), (share(failed), "bold red" if failed else "bold")),
        Text.assemble(("wait p95 ", "dim"), (seconds(total.wait.p95), "bold")),
        Text.assemble(("running ", "dim"), (f"{count(look.running)} of {count(look.slots)}", "bold")),
    ]
    if width >= _WIDE:
        parts.insert(3, Text.assemble(("run p95 ", "dim"), (seconds(total.run.p95), "bold")))
        complete = look.total.points[:-1]  # the last stretch is still under way
        parts[0].append(f" {sparkline([point.finished for point in complete], _TREND_WIDTH)}", style="green")
        parts[1].append(f" {sparkline([point.failed for point in complete], _TREND_WIDTH)}", style="red")
    return Text("   ").join(parts)


def needs(look: Look, width: int) -> Text:
    """What needs a person, or that nothing does."""
    if not look.needs:
        return Text.assemble(("✓ ", "green"), "All is well. Nothing needs a person.")
    number = len(look.needs)
    lines = [Text("1 thing needs a person" if number == 1 else f"{number} things need a person", style="bold")]
    for need in look.needs[:_NEEDS_SHOWN]:
        style = "bold red" if need.severity is Severity.PROBLEM else "yellow"
        lines.append(Text.assemble(("● ", style), one_line(need.sentence)))
    if number > _NEEDS_SHOWN:
        lines.append(Text(f"  and {number - _NEEDS_SHOWN} more: perdure attention", style="dim"))
    for line in lines:
        line.truncate(max(width - 2, 10), overflow="ellipsis")
    return Text("\n").join(lines)


def tabs(look: Look, shown: int) -> Text:
    """The names of the lists, with how long each is."""
    names = []
    for number, each in enumerate(LISTS):
        style = "bold reverse" if number == shown else "dim"
        names.append(Text(f" {number + 1} {each.title} {len(each.rows(look))} ", style=style))
    return Text(" ").join(names)
