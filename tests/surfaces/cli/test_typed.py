"""Errors name what the user typed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.main import get_command

from perdure.surfaces.cli.typed import as_typed, path_of

app = typer.Typer(name="perdure")
jobs = typer.Typer()
app.add_typer(jobs, name="jobs")


@jobs.command("list")
def list_jobs(
    job_id: str = typer.Argument(metavar="ID"),
    url: str = typer.Option("", "--url"),
    page: int = typer.Option(1, "--page", "-p"),
    queue: str = typer.Option("", "--queue"),
    older_than: str = typer.Option("", "--older-than"),
    interval: str = typer.Option("", "--heartbeat-interval"),
) -> None: ...


@app.command()
def stats() -> None: ...


ROOT: Any = get_command(app)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("job_id", "ID"),
        ("id", "ID"),
        ("older_than", "--older-than"),
        ("queue", "--queue"),
        ("unknown", "unknown"),
    ],
)
def test_a_field_becomes_the_option_or_argument_of_the_command(field: str, shown: str) -> None:
    assert as_typed(ROOT, ["jobs", "list", "1"])(field) == shown


def test_a_field_of_another_name_is_translated_only_if_its_option_was_typed() -> None:
    for words in (["--page", "0"], ["--page=0"]):
        assert as_typed(ROOT, ["jobs", "list", *words])("number") == "--page"
    assert as_typed(ROOT, ["jobs", "list"])("number") == "number"
    assert as_typed(ROOT, ["jobs", "list", "--queue", "x"])("queues") == "--queue"


def test_a_wrong_url_is_reported_by_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERDURE_URL", raising=False)
    assert as_typed(ROOT, ["jobs", "list"])("url") == "url"
    assert as_typed(ROOT, ["jobs", "list", "--url", "x"])("url") == "--url"
    monkeypatch.setenv("PERDURE_URL", "x")
    assert as_typed(ROOT, ["jobs", "list"])("url") == "PERDURE_URL"
    assert as_typed(ROOT, ["jobs", "list", "--url=x"])("url") == "--url"


def test_the_path_of_a_command_ends_before_its_arguments() -> None:
    root = SimpleNamespace(name="perdure", commands=ROOT.commands)
    assert path_of(root, ["jobs", "list", "stats"]) == "perdure jobs list"
    assert path_of(root, ["nope", "jobs"]) == "perdure"
