"""Dashboards and alert rules name only metrics and labels that are exported, and link to the desk."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # comes with the development packages
from tests.signals.metrics.promql import Selector, read
from tests.surfaces.conftest import run_cli

from perdure.domain.gate import BreakerState
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.statistics import Ending
from perdure.domain.worker import Phase
from perdure.signals.metrics.catalogue import METRICS, Type
from perdure.signals.metrics.cluster_families import SILENT
from perdure.signals.metrics.files import DESK, Board, alert_rules, dashboard
from perdure.surfaces.desk.pages import ROOMS

LABELS = {metric.name: set(metric.labels) for metric in METRICS} | {
    metric.name + suffix: {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
    for metric in METRICS
    if metric.type is Type.HISTOGRAM
    for suffix in ("_bucket", "_sum", "_count")
}
OF_TARGETS = {"instance", "job"}
VALUES = {
    "state": {*JobState, *(state.replace(" ", "_") for state in BreakerState)},
    "phase": {*Phase, SILENT},
    "outcome": {*Ending, "fired", "missed", "overlapped", "ready", "dead"},
}


def check(expression: str) -> None:
    """Raises if an expression names what is not exported."""
    found = read(expression)
    assert found.selectors, expression
    known = set[str]()
    for selector in found.selectors:
        if selector.name.startswith("perdure_"):
            assert selector.name in LABELS, f"{selector.name} is not exported: {expression}"
            known |= LABELS[selector.name]
            _check_labels(selector, expression)
        else:
            assert selector.name in {"queue", "kind"}, f"{selector.name} in {expression}"  # of label_values(…, label)
    assert found.grouped <= known | OF_TARGETS, f"{found.grouped - known} in {expression}"


def _check_labels(selector: Selector, expression: str) -> None:
    assert selector.labels.keys() <= LABELS[selector.name] | OF_TARGETS, expression
    for label, pattern in selector.labels.items():
        values = VALUES.get(label)
        if values is not None:
            for word in pattern.split("|"):
                assert word in values, f"{label} is never {word!r}: {expression}"


def expressions(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def links(text: str) -> set[str]:
    """The paths of the desk that a file leads to, without names."""
    found = re.findall(r"(?:\$\{desk\}|https://desk\.example\.com)(/[^\s\"']*)", text)
    return {re.sub(r"\{\{.*", "x", re.sub(r"\$\{.*?\}", "x", path)).partition("?")[0] for path in found}


def pages() -> list[re.Pattern[str]]:
    paths = [entry.path for room in ROOMS for entry in room.entries if entry.method == "GET"]
    return [re.compile(re.sub(r"\{.*?\}", "[^/]+", path)) for path in [*paths, "/readyz"]]


@pytest.mark.parametrize("board", list(Board))
def test_a10_dashboards_use_exported_metrics_and_link_to_pages_of_the_desk(board: Board) -> None:
    text = dashboard(board, "https://desk.example.com/")
    document = json.loads(text)
    found = list(expressions(document))
    assert len(found) > 10
    for expression in found:
        check(expression)
    ids = [panel["id"] for panel in document["panels"]]
    assert len(ids) == len(set(ids))
    assert DESK not in text
    assert "https://desk.example.com" in text
    for path in links(text):
        assert any(page.fullmatch(path) for page in pages()), f"the desk has no page {path}"
    assert sum(bool(panel.get("fieldConfig", {}).get("defaults", {}).get("links")) for panel in document["panels"]) > 5


def test_b14_alert_rules_use_exported_metrics_and_link_to_pages_of_the_desk() -> None:
    text = alert_rules("https://desk.example.com")
    [group] = yaml.safe_load(text)["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) > 10
    for rule in group["rules"]:
        check(rule["expr"])
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description", "desk"}
        assert rule["annotations"]["desk"].startswith("https://desk.example.com/")
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    for path in links(text):
        assert any(page.fullmatch(path) for page in pages()), f"the desk has no page {path}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_b14_alert_rules_say_what_is_the_matter(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(alert_rules("https://desk.example.com"))
    tests = shutil.copy(Path(__file__).with_name("rules_test.yml"), tmp_path)
    told = subprocess.run(["promtool", "test", "rules", tests], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        "perdure_no_such_total > 1",
        'perdure_cluster_jobs{stat="ready"}',
        'perdure_cluster_jobs{state="redy"}',
        "sum by (kind) (perdure_cluster_jobs)",
        "sum(perdure_cluster_jobs",
        "perdure_cluster_jobs)",
        "somme(perdure_cluster_jobs)",
    ],
)
def test_the_check_finds_what_is_wrong(wrong: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check(wrong)


def test_commands_print_dashboards_and_rules() -> None:
    shown = run_cli("metrics", "dashboard", "kind", "--desk", "https://ops.example.com/desk")
    assert shown.code == 0
    assert json.loads(shown.out)["title"] == "perdure: one kind"
    assert "https://ops.example.com/desk" in shown.out
    assert yaml.safe_load(run_cli("metrics", "rules").out)["groups"]
    refused = run_cli("metrics", "rules", "--desk", 'javascript:"x')
    assert refused.code != 0
    assert "--desk" in refused.err
