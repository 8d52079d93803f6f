"""`perdure backup`: C14, a copy while work goes on, or the words that name better tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs.ids import JobId
from perdure.policy.schedules.backup_plan import backup_time
from perdure.surfaces.cli.exits import Exit


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An SQLite file that holds nothing yet."""
    where = f"sqlite:///{tmp_path / 'perdure.db'}"
    assert run_cli("migrate", env={"PERDURE_URL": where}).code == Exit.OK
    return where


def back_up(url: str, *words: str) -> Any:
    return run_cli("backup", *words, env={"PERDURE_URL": url})


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
def test_c14_the_copy_holds_the_jobs(cli: Cli, arrange: Arrange[JobId], tmp_path: Path) -> None:
    job_id = arrange(enqueue)
    copy = tmp_path / "copy.db"
    answer = cli("backup", str(copy), "--json")
    assert answer.code == Exit.OK
    assert (answer.json["path"], answer.json["jobs"], answer.json["bytes"]) == (str(copy), 1, copy.stat().st_size)
    assert query(f"sqlite:///{copy}", "SELECT id FROM {job}") == [(job_id,)]


def test_for_people_it_shows_where_and_how_much(url: str, tmp_path: Path) -> None:
    answer = back_up(url, str(tmp_path / "copy.db"))
    assert answer.code == Exit.OK
    assert answer.out.startswith(f"{tmp_path / 'copy.db'}: ")
    assert "KiB, 0 jobs, copied and checked in " in answer.out


def test_in_a_folder_it_gets_a_name_with_date_and_time(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    made = Path(back_up(url, str(folder), "--json").json["path"])
    assert made.parent == folder
    assert backup_time(made.name) is not None


def test_nothing_is_overwritten(url: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious.db"
    precious.write_text("mine")
    answer = back_up(url, str(precious), "--json")
    assert answer.code == Exit.USAGE
    assert "exists" in answer.error["error"]
    assert precious.read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(url: str, tmp_path: Path) -> None:
    answer = back_up(url, str(tmp_path / "nowhere" / "copy.db"))
    assert answer.code == Exit.USAGE
    assert "nowhere" in answer.err


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    assert back_up(f"sqlite:///{missing}", str(tmp_path / "copy.db")).code == Exit.FAILED
    assert not missing.exists()


@pytest.mark.parametrize("engine_url", ["postgres"], indirect=True)
def test_on_postgresql_the_error_names_its_own_tools(cli: Cli, arrange: Arrange[None], tmp_path: Path) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli("backup", str(tmp_path / "copy.db"), "--json")
    assert answer.code == Exit.FAILED
    assert "pg_dump" in answer.error["error"]
    assert not (tmp_path / "copy.db").exists()
