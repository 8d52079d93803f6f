"""The log of a worker: whoever writes to it, it looks alike and goes to standard error."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from perdure.event_log import EventLog
from perdure.events import JobDied, StoreRecovered, StoreTrouble
from perdure.surfaces.cli.logs import LogFormat, LogLevel, set_up_logging


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Leave no trace in the logging of other tests."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


DEATH = JobDied("01", "greet", 3, "attempts exhausted", "\x1b[31mno\nroute\u202e")


def fail() -> None:
    raise ValueError(DEATH.error)


def test_json_lines_carry_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.JSON, LogLevel.INFO)
    EventLog()(DEATH)
    logging.getLogger("app.mail").warning("slow %s", "server")
    captured = capsys.readouterr()
    ours, theirs = (json.loads(line) for line in captured.err.splitlines())
    assert (ours["event"], ours["level"], ours["job_id"], ours["error"]) == (
        "job is dead",
        "error",
        "01",
        DEATH.error,
    )
    assert (theirs["event"], theirs["logger"]) == ("slow server", "app.mail")
    assert captured.out == ""


def test_console_lines_are_safe_also_with_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.CONSOLE, LogLevel.INFO)
    EventLog()(DEATH)
    try:
        fail()
    except ValueError:
        logging.getLogger("app").exception("it failed")
    shown = capsys.readouterr().err
    assert not {"\x1b", "\u202e"} & set(shown)
    assert "Traceback (most recent call last)" in shown
    assert len([line for line in shown.splitlines() if "job is dead" in line]) == 1


def test_the_level_holds(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.CONSOLE, LogLevel.ERROR)
    logging.getLogger("app").warning("not worth a line")
    EventLog()(DEATH)
    shown = capsys.readouterr().err
    assert "not worth" not in shown
    assert "job is dead" in shown


def test_a_database_that_is_away_takes_few_lines_however_many_meet_it(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.JSON, LogLevel.INFO)
    now = [0.0]
    log = EventLog(lambda: now[0])
    for _ in range(2):
        for pause in (1, 1, 1, 8):
            now[0] += pause
            for task in ("claim", "promoter"):
                log(StoreTrouble(task, "gone", 1.0))
        log(DEATH)
        for task in ("claim", "promoter"):
            log(StoreRecovered(task, 4))
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    once = [("claim", None), ("claim", 5), (None, None), ("claim", None)]
    assert [(line.get("what"), line.get("left_out")) for line in told] == once * 2
    assert told[3]["event"] == StoreRecovered.sentence
