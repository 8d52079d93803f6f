"""Entries of the audit trail: on a wide terminal one row each, else two lines each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from perdure.domain.operate.audit import AuditEntry
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import absolute

_WIDE_FROM_COLUMNS: Final = 130
_VALUE_LIMIT_CHARACTERS: Final = 500


def show_entries(entries: Sequence[AuditEntry]) -> None:
    """Print who did what, when, to what, why, from where, and what changed."""
    out = console()
    if out.is_terminal and out.width >= _WIDE_FROM_COLUMNS:
        out.print(_table(entries))
        return
    for entry in entries:
        who = f"  {one_line(entry.actor)}"
        head = Text.assemble((absolute(entry.at), "dim"), "  ", (one_line(entry.action), "bold"), who, _on(entry))
        out.print(head, soft_wrap=True)
        origin = {"why": entry.why, "from": entry.source, "bulk": entry.bulk}
        pieces = [
            f"{name}={one_line(text, _VALUE_LIMIT_CHARACTERS)}" for name, text in origin.items() if text is not None
        ]
        if rest := "  ".join([*pieces, *_details(entry)]):
            out.print(Text(f"    {rest}", "dim"), soft_wrap=True)


def _table(entries: Sequence[AuditEntry]) -> Table:
    table = columns("When", "Action", "By", "From", "On", "Why", "Changed", giving_way={"By", "From", "Why", "Changed"})
    for entry in entries:
        table.add_row(
            Text(absolute(entry.at), style="dim"),
            Text(one_line(entry.action), style="bold"),
            cell(entry.actor),
            cell(entry.source or "", "dim"),
            Text(_on(entry).strip()),
            cell(entry.why or ""),
            cell("  ".join(_details(entry)), "dim"),
        )
    return table


def _on(entry: AuditEntry) -> str:
    if entry.job_id is not None:
        return f"  {entry.job_id}"
    return f"  {some(entry.jobs, 'job')}" if entry.jobs else ""


def _details(entry: AuditEntry) -> list[str]:
    """What changed, as `state: dead → ready`, and other details."""
    before, after = (_facts(entry.details.get(when)) for when in ("before", "after"))
    changes = [f"{one_line(name)}: {_text(before, name)} → {_text(after, name)}" for name in {**before, **after}]
    others = [
        f"{one_line(name)}={one_line(str(value), _VALUE_LIMIT_CHARACTERS)}"
        for name, value in entry.details.items()
        if name not in {"before", "after"}
    ]
    return others + changes


def _facts(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(facts: dict[str, Any], name: str) -> str:
    return one_line(str(facts[name]), _VALUE_LIMIT_CHARACTERS) if facts.get(name) is not None else "none"
