"""The log of a worker: all loggers share one format and go to standard error."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest
import structlog

from perdure.errors import SettingsError
from perdure.events import Emitter, JobDied, JobStarted, StoreRecovered, StoreTrouble
from perdure.events.log import AttemptLog, EventLog
from perdure.surfaces.cli.workers.logs import LogFormat, LogLevel, set_up_logging


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Leave no trace in the logging of other tests."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("mcp").setLevel(logging.NOTSET)
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


def test_on_a_terminal_the_job_comes_before_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    set_up_logging(LogFormat.CONSOLE, LogLevel.INFO)
    facts = {"job_id": "01", "kind": "greet", "error": "no route", "wait": 54.70562}
    structlog.stdlib.get_logger("perdure").warning("it failed", **facts)
    logging.getLogger("app").warning("slow server")
    ours, theirs = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    shown = "kind=greet wait=54.706 job_id=01 error='no route'"
    assert re.fullmatch(rf"\d\d:\d\d:\d\d \[warning  \] it failed {shown}", ours)
    assert theirs.endswith("slow server [app]")


def test_the_level_holds(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.CONSOLE, LogLevel.ERROR)
    logging.getLogger("app").warning("not worth a line")
    EventLog()(DEATH)
    shown = capsys.readouterr().err
    assert "not worth" not in shown
    assert "job is dead" in shown


@pytest.mark.parametrize(("level", "told"), [("debug", "iwe"), ("info", "we"), ("error", "e")])
def test_sessions_of_agents_are_reported_at_the_level_of_debugging_only(
    level: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SDK tells the id of each session as information."""
    set_up_logging(LogFormat.JSON, LogLevel(level))
    sdk = logging.getLogger("mcp.server.streamable_http")
    for word, say in (("i", sdk.info), ("w", sdk.warning), ("e", sdk.error)):
        say(word)
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == list(told)


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


def test_an_app_that_configured_logging_keeps_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    root.handlers[:] = [own := logging.StreamHandler(sys.stdout)]
    own.setFormatter(logging.Formatter("OWN %(levelname)s %(message)s"))
    root.setLevel("WARNING")
    assert set_up_logging(None, None) is False
    EventLog()(DEATH)
    EventLog()(StoreRecovered("claims", 1))
    shown = capsys.readouterr()
    assert shown.err == ""
    [line] = shown.out.splitlines()
    assert line.startswith("OWN ERROR job is dead job_id='01' kind='greet'")
    assert "\x1b" not in line


def test_a_format_that_is_asked_for_replaces_the_apps_own(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger().handlers[:] = [logging.StreamHandler(sys.stdout)]
    set_up_logging(LogFormat.JSON, None)
    EventLog()(DEATH)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err)["event"] == "job is dead"


def test_an_app_that_configured_structlog_keeps_its_own() -> None:
    written: list[structlog.typing.EventDict] = []

    def keep(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        written.append(dict(event))
        raise structlog.DropEvent

    structlog.configure(processors=[keep], wrapper_class=structlog.stdlib.BoundLogger)
    before = list(logging.getLogger().handlers)
    set_up_logging(None, None)
    EventLog()(DEATH)
    assert [event["event"] for event in written] == ["job is dead"]
    assert logging.getLogger().handlers == before


def test_a_failure_comes_with_its_traceback_which_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.CONSOLE, LogLevel.INFO)
    traceback = "Traceback (most recent call last):\n  File x\nValueError: no\n2026-01-01 [info] all is well"
    EventLog()(JobDied("01", "greet", 3, "attempts exhausted", "ValueError: no", traceback))
    first, *others = capsys.readouterr().err.splitlines()
    assert "job is dead" in first
    assert "    Traceback (most recent call last):" in others
    assert all(line.startswith("    ") for line in others)


async def test_attempts_are_logged_up_to_so_many_lines_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.JSON, LogLevel.INFO)
    emitter = Emitter()
    stop = AttemptLog("info", per_second=3).follow(emitter)
    for number in range(10):
        emitter.emit(JobStarted(str(number), "greet", "default", 1))
    told = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert told == ["job started"] * 3 + [
        "more than 3 lines a second: the other attempts of this second are not logged"
    ]
    assert not emitter.follows_attempts  # so that they cost nothing
    stop()


@pytest.mark.parametrize(("level", "per_second"), [("loud", 1), ("info", 0), ("info", True)])
def test_an_attempt_log_that_makes_no_sense_is_refused(level: str, per_second: int) -> None:
    with pytest.raises(SettingsError, match=r"level|per_second"):
        AttemptLog(level, per_second)
