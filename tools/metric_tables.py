"""Write the two tables of docs/reference/metrics.md from the catalogue of metrics, so that they cannot lie.

Run it after a change to `perdure.signals.metrics.catalogue`; a test fails while the page is out of date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from perdure.signals.metrics.catalogue import METRICS, Metric

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
_HEAD: Final = "| metric | type | labels | meaning |\n|---|---|---|---|\n"


def render(page: str) -> str:
    """The page with its tables as they should be: of a process first, of the cluster second."""
    before, *rest = page.split(_HEAD)
    if len(rest) != len(_TABLES):
        raise SystemExit(f"{PAGE.name} needs {len(_TABLES)} tables that begin with {_HEAD.splitlines()[0]}")
    for rows, old in zip(_TABLES, rest, strict=True):
        lines = old.splitlines(keepends=True)
        tail = next((place for place, line in enumerate(lines) if not line.startswith("|")), len(lines))
        before += _HEAD + "".join(rows) + "".join(lines[tail:])
    return before


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.type} | {labels} | {metric.help} |\n"


_TABLES: Final = (
    [_row(metric) for metric in METRICS if not metric.is_of_cluster],
    [_row(metric) for metric in METRICS if metric.is_of_cluster],
)

if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
