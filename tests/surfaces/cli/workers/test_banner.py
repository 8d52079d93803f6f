"""What a worker says when it starts, and which queues it serves by default."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from perdure import App, WorkerSettings
from perdure.surfaces.cli.workers.banner import greet
from perdure.surfaces.cli.workers.logs import LogFormat, LogLevel, set_up_logging


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave no trace in the logging of other tests, and find none of theirs."""
    monkeypatch.delenv("PERDURE_URL", raising=False)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def shop(url: str = "postgresql://ada:secret@db/shop") -> App:
    app = App(url)

    @app.job(queue="mail")
    async def send() -> None: ...

    @app.job
    async def audit() -> None: ...

    @app.cron("0 2 * * *")
    async def clean_up() -> None: ...

    @app.every("2m")
    async def sweep() -> None: ...

    return app


def test_people_are_reported_what_was_found_and_never_the_password(capsys: pytest.CaptureFixture[str]) -> None:
    app = shop()
    set_up_logging(LogFormat.CONSOLE, LogLevel.INFO)
    greet(app, app.serving(WorkerSettings(concurrency=7)), pretty=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert "secret" not in said.err
    for part in (
        "perdure ",
        "@db/shop",
        "default, mail",
        "audit, clean_up, send",
        "clean_up (0 2 * * *)",
        "sweep",
        "7 jobs",
    ):
        assert part in said.err


def test_machines_are_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    app = shop()
    set_up_logging(LogFormat.JSON, LogLevel.INFO)
    greet(app, app.serving(WorkerSettings()), pretty=False)
    [line] = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert told["queues"] == ["default", "mail"]
    assert told["kinds"] == ["audit", "clean_up", "send"]
    assert "secret" not in line


def test_kinds_whose_queue_is_not_served_here_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    app = shop()
    set_up_logging(LogFormat.JSON, LogLevel.WARNING)
    greet(app, app.serving(WorkerSettings(queues="default")), pretty=False)
    [told] = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (told["level"], told["queue"], told["kinds"]) == ("warning", "mail", ["send"])


def test_a_file_that_is_about_to_be_made_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new.db"
    app = shop(f"sqlite:///{file}")
    set_up_logging(LogFormat.JSON, LogLevel.WARNING)
    greet(app, app.serving(WorkerSettings()), pretty=False)
    [told] = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert told["file"] == str(file)
    file.touch()
    greet(app, app.serving(WorkerSettings()), pretty=False)
    assert capsys.readouterr().err == ""


def test_another_database_than_commands_look_at_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here.db").touch()
    monkeypatch.chdir(tmp_path)
    app = shop("sqlite:///here.db")
    set_up_logging(LogFormat.JSON, LogLevel.WARNING)
    monkeypatch.setenv("PERDURE_URL", "postgresql://ada:secret@db/shop")
    greet(app, app.serving(WorkerSettings()), pretty=False)
    [told] = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (told["app"], told["commands"]) == ("sqlite:///here.db", "postgresql://ada:***@db/shop")
    monkeypatch.setenv("PERDURE_URL", f"sqlite:///{tmp_path}/here.db")
    greet(app, app.serving(WorkerSettings()), pretty=False)
    assert capsys.readouterr().err == ""


def test_an_app_without_jobs_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("postgresql://db/shop")
    set_up_logging(LogFormat.JSON, LogLevel.WARNING)
    greet(app, app.serving(WorkerSettings()), pretty=False)
    assert "declares no jobs" in capsys.readouterr().err


def test_a_worker_serves_every_queue_that_its_kinds_use_or_that_the_app_names() -> None:
    assert [queue.name for queue in shop().serving(WorkerSettings()).queues] == ["default", "mail"]
    named = App("postgresql://db/shop", queues=["mail", "reports"])
    assert [queue.name for queue in named.serving(WorkerSettings()).queues] == ["mail", "reports"]
    assert [queue.name for queue in shop().serving(WorkerSettings(queues="x")).queues] == ["x"]
