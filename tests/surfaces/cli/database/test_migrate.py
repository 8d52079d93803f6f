"""`perdure migrate`, `perdure version`, and what every command says of a database it cannot use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.surfaces.cli.exits import Exit
from perdure.version import __version__

COMMANDS = [("jobs", "list"), ("dead", "list"), ("migrate", "--check"), ("jobs", "requeue", "--all", "--yes")]


@pytest.fixture
def engine_url(empty_url: str) -> str:
    """Nothing is migrated yet."""
    return empty_url


def test_migrate_says_what_it_applied_and_then_that_there_is_nothing_to_do(cli: Cli) -> None:
    first = cli("migrate", "--json")
    assert first.code == Exit.OK
    assert first.json["applied"]
    assert cli("migrate", "--json").json == {"current": True, "applied": []}
    assert "current" in cli("migrate").out


def test_migrate_for_people(cli: Cli) -> None:
    assert "Applied" in cli("migrate").out


def test_check_changes_nothing(cli: Cli, engine_url: str) -> None:
    if engine_url.startswith("sqlite"):
        Path(engine_url.removeprefix("sqlite:///")).touch()
    answer = cli("migrate", "--check", "--json")
    assert (answer.code, answer.json["current"]) == (Exit.FAILED, False)
    assert "perdure migrate" in answer.json["problem"]
    assert cli("migrate", "--check").code == Exit.FAILED
    cli("migrate")
    assert cli("migrate", "--check", "--json").json == {"current": True, "problem": None}


def test_without_a_schema_commands_say_what_to_do(cli: Cli, engine_url: str) -> None:
    if engine_url.startswith("sqlite"):
        Path(engine_url.removeprefix("sqlite:///")).touch()
    answer = cli("jobs", "list", "--json")
    assert answer.code == Exit.FAILED
    assert "perdure migrate" in answer.error["error"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistyped_file_is_not_created(tmp_path: Path, command: tuple[str, ...]) -> None:
    missing = tmp_path / "mistyped.db"
    answer = run_cli(*command, "--url", f"sqlite:///{missing}", "--json")
    assert answer.code == Exit.FAILED
    assert "no such file" in answer.error["error"]
    assert not missing.exists()


@pytest.mark.parametrize("url", ["redis://localhost", "sqlite://", "nonsense"])
def test_a_bad_url_is_refused_by_name(url: str) -> None:
    answer = run_cli("jobs", "list", "--url", url, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "--url")
    answer = run_cli("jobs", "list", "--json", env={"PERDURE_URL": url})
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "PERDURE_URL")


def test_an_unreachable_server_is_a_failure_and_keeps_its_password() -> None:
    url = "postgresql://ada:hunter2@127.0.0.1:1/nowhere"
    for words in (("jobs", "list"), ("doctor",), ("migrate",)):
        answer = run_cli(*words, "--url", url)
        assert answer.code in {Exit.FAILED, Exit.UNHEALTHY}
        assert "hunter2" not in answer.out + answer.err


def test_a_shared_database_keeps_prefixes_apart(engine_url: str, cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.check_schema())
    joint = "&" if "?" in engine_url else "?"
    answer = cli("jobs", "list", "--url", f"{engine_url}{joint}prefix=other_")
    assert answer.code == Exit.FAILED


def test_version() -> None:
    assert __version__ in run_cli("version").out
    assert run_cli("version", "--json").json["perdure"] == __version__
    assert run_cli("--version").out == run_cli("version").out


def test_help_shows_the_exit_codes() -> None:
    answer = run_cli("--help")
    assert answer.code == Exit.OK
    for code in Exit:
        assert f"{code:d} " in answer.out


def test_without_a_word_there_is_help() -> None:
    answer = run_cli()
    assert answer.code == Exit.USAGE
    assert "Usage" in answer.out + answer.err
    assert run_cli("nope", "--json").code == Exit.USAGE


def test_a_warning_about_the_library_does_not_spoil_the_document(tmp_path: Path) -> None:
    """Standard output carries the one JSON document, whatever the engine has to say."""
    url = f"sqlite:///{tmp_path / 'perdure.db'}?driver=sqlite3"
    words = [sys.executable, "-m", "perdure", "migrate", "--json", "--url", url]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["current"]
