"""Tables of outcomes, for the terminal and for a Markdown page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

from benchmarks.harness.measure import Metric, ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.harness.measure import Outcome

PLAIN_WIDTH = 110
COLUMNS: dict[Metric, str] = {
    Metric.DRAIN_ONE: "drain, 1 worker (jobs/s)",
    Metric.DRAIN_TWO: "drain, 2 workers (jobs/s)",
    Metric.ENQUEUE_ONE_BY_ONE: "enqueue one by one (/s)",
    Metric.ENQUEUE_BULK: "enqueue in bulk (/s)",
    Metric.PICKUP_P50: "pick-up p50 (ms)",
    Metric.PICKUP_P99: "pick-up p99 (ms)",
}
RAW_COLUMNS: dict[Metric, str] = {
    Metric.SINGLE_COMMITS: "single-row commits (/s)",
    Metric.BULK_ROWS: "rows in bulk (/s)",
}


def show(outcomes: Sequence[Outcome], columns: dict[Metric, str] = COLUMNS) -> None:
    """Print the outcomes as a table, and below it why any is missing."""
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    table = Table(Column("system", no_wrap=True), Column("engine", no_wrap=True))
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for outcome in _measured(outcomes):
        table.add_row(*_cells(outcome, columns))
    if table.row_count:
        console.print(table)
    for outcome in outcomes:
        if outcome.skipped:
            console.print(f"skipped: {outcome.name}: {outcome.skipped}", markup=False)


def markdown(outcomes: Sequence[Outcome], columns: dict[Metric, str] = COLUMNS) -> str:
    """Return the outcomes as a Markdown table with the settings and skips beneath."""
    lines = [_row(["system", "engine", *columns.values()]), _row(["---", "---", *["---:"] * len(columns)])]
    lines += [_row(_cells(outcome, columns)) for outcome in _measured(outcomes)]
    lines.append("")
    for outcome in outcomes:
        if outcome.skipped:
            lines.append(f"- {outcome.name}: skipped, {outcome.skipped}")
        elif outcome.settings:
            settings = "; ".join(f"{name} {value}" for name, value in outcome.settings.items())
            lines.append(f"- {_title(outcome)}: {settings}")
    return "\n".join(lines).rstrip() + "\n"


def ratios(ours: Outcome, others: Iterable[Outcome], metric: Metric) -> dict[str, float]:
    """Return by what factor `ours` exceeds each other system on the same engine."""
    found = {
        other.name: ratio(ours.value(metric), other.value(metric))
        for other in others
        if other.engine == ours.engine and other.name != ours.name
    }
    return {name: factor for name, factor in found.items() if factor is not None}


def _measured(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not outcome.skipped]


def _cells(outcome: Outcome, columns: dict[Metric, str]) -> list[str]:
    figures = [_figure(outcome.value(metric)) for metric in columns]
    return [_title(outcome), outcome.engine, *figures]


def _title(outcome: Outcome) -> str:
    return f"{outcome.name} {outcome.version}".strip()


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
