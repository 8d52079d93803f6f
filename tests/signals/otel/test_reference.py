"""docs/reference/opentelemetry.md lists what is exported, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from perdure.signals.otel import metrics, names

PAGE = Path(__file__).parents[3] / "docs/reference/opentelemetry.md"


def _listed(heading: str) -> set[str]:
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE))


def test_all_attributes_are_listed() -> None:
    known = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    assert _listed("Attributes") == {name for name in known if name.startswith(("perdure.", "messaging."))}


def test_all_instruments_are_listed() -> None:
    known = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    assert _listed("Metrics") == known
