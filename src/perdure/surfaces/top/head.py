"""The lines above the list: the database, the figures of the span, and what needs a person."""

from __future__ import annotations

from enum import Enum
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from perdure.storage.operate.diagnosis import Severity
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.times import absolute
from perdure.surfaces.top.figures import count, rate, seconds, share, sparkline
from perdure.surfaces.top.look import Look
from perdure.surfaces.top.tables import LISTS, span_seconds

_NEEDS_SHOWN: Final = 5
_NEEDS_SHOWN_TALL: Final = 10
_WIDE_FROM_COLUMNS: Final = 120
_TALL_FROM_ROWS: Final = 36  # rows of the terminal
_LEAST_ROOM_COLUMNS: Final = 10
_TREND_COLUMNS: Final = 12
KEYS: Final = (
    "1 2 3 4, Tab   queues, workers, dead letters, kinds",
    "↑ ↓            choose a row",
    "Enter          explain the row, with the command that does the same",
    "n              everything that needs a person, with the commands",
    "s              span: last hour, day, week",
    "p              pause or resume a queue or kind",
    "u              tell a worker to stop claiming, or to claim again",
    "o              requeue one dead letter of a group as a probe",
    "r              requeue a whole group, after a dry run",
    "q              quit",
)


class Contact(Enum):
    """Whether the database answers, and how fast."""

    LIVE = "live"
    SLOW = "slow"
    AWAY = "away"


_MARKS: Final = {
    Contact.LIVE: ("● live", "green"),
    Contact.SLOW: ("◌ waiting for an answer", "bold yellow"),
    Contact.AWAY: ("○ away", "bold red"),
}


def title(database: str, look: Look | None, contact: Contact, width: int) -> Text:
    """The first line. A long address is cut at its start, because its end names the database."""
    name = Text("✿ perdure  ", style="bold green")
    mark = Text()
    if look is not None:
        mark = Text.assemble(("last ", "dim"), look.span, "  ", (absolute(look.at), "dim"), "  ")
    mark.append(*_MARKS[contact])
    if look is not None and contact is Contact.AWAY:
        mark.append(f" since {look.at:%H:%M:%S}", style="bold red")
    room = max(width - 4 - name.cell_len - mark.cell_len, _LEAST_ROOM_COLUMNS)
    return Text.assemble(name, _end_of(one_line(database), room), "  ", mark, no_wrap=True)


def _end_of(text: str, room: int) -> str:
    cut = text
    while cell_len(cut) > room:
        cut = f"…{cut[2:]}"
    return cut + " " * (room - cell_len(cut))


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
    if width >= _WIDE_FROM_COLUMNS:
        parts.insert(3, Text.assemble(("run p95 ", "dim"), (seconds(total.run.p95), "bold")))
        complete = look.total.points[:-1]  # the last interval is not over yet
        parts[0].append(f" {sparkline([point.finished for point in complete], _TREND_COLUMNS)}", style="green")
        parts[1].append(f" {sparkline([point.failed for point in complete], _TREND_COLUMNS)}", style="red")
    return Text("   ").join(parts)


def needs(look: Look, width: int, height: int) -> Text:
    """What needs a person, or that nothing does."""
    if not look.needs:
        return Text.assemble(("✓ ", "green"), "All is well. Nothing needs a person.")
    number = len(look.needs)
    shown = _NEEDS_SHOWN_TALL if height >= _TALL_FROM_ROWS else _NEEDS_SHOWN
    lines = [Text("1 thing needs a person" if number == 1 else f"{number} things need a person", style="bold")]
    for need in look.needs[:shown]:
        style = "bold red" if need.severity is Severity.PROBLEM else "yellow"
        lines.append(Text.assemble(("● ", style), one_line(need.sentence)))
    if number > shown:
        lines.append(Text(f"  and {number - shown} more: press n", style="dim"))
    for line in lines:
        line.truncate(max(width - 2, _LEAST_ROOM_COLUMNS), overflow="ellipsis")
    return Text("\n").join(lines)


def needs_in_full(look: Look) -> tuple[str, ...]:
    """Everything that needs a person, each with its details and the first command to run."""
    lines: list[str] = []
    for need in look.needs:
        known = (one_line(need.detail), one_line(need.cli))
        lines += [f"● {one_line(need.sentence)}", *(f"  {line}" for line in known if line), ""]
    return tuple(lines[:-1]) or ("Nothing needs a person.",)


def tabs(look: Look, shown: int) -> Text:
    """The names of the lists and their lengths."""
    names = []
    for number, each in enumerate(LISTS):
        style = "bold reverse" if number == shown else "dim"
        names.append(Text(f" {number + 1} {each.title} ({len(each.rows(look))}) ", style=style))
    return Text("").join(names)
