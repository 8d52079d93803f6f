"""What a command writes into a pipe: whole lines, no colours, no padding."""

from __future__ import annotations

from typing import Any

from tests.support.builders.jobs import a_job
from tests.surfaces.conftest import Arrange, run_cli

LONG = "kind_" + "k" * 90


def test_a_list_in_a_pipe_is_neither_cut_nor_wrapped_nor_padded(arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.insert([a_job(kind=LONG, queue="q" * 90), a_job(kind="greet")]))
    where = {"PERDURE_URL": engine_url, "COLUMNS": None}
    listed = run_cli("jobs", "list", env=where).out
    assert len(listed.splitlines()) == 3
    assert LONG in listed
    counted = run_cli("stats", env=where).out
    checked = run_cli("doctor", env=where).out
    for text in (listed, counted, checked):
        assert "…" not in text
        assert "\x1b" not in text
        assert all(line == line.rstrip() for line in text.splitlines())


def test_columns_says_how_wide_a_pipe_is(arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.insert([a_job(kind=LONG)]))
    listed = run_cli("jobs", "list", env={"PERDURE_URL": engine_url, "COLUMNS": "80"}).out
    assert max(map(len, listed.splitlines())) <= 80
    assert LONG not in listed
