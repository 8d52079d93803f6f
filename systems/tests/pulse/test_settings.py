"""Settings (C10): their defaults, the values for tests, and what each of them changes."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from systems.tests.pulse.support import SQLITE, at_work

from perdure import Event, Polling, SettingsError
from perdure.events import WorkerClosed
from perdure.testing import Sandbox
from perdure_systems.__main__ import read_env_file
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.model import model
from perdure_systems.pulse.settings import FOR_TESTS, read_settings, worker_settings

FOLDER = Path(read_settings.__code__.co_filename).parent


def seconds(**spans: float) -> dict[str, timedelta]:
    return {name: timedelta(seconds=span) for name, span in spans.items()}


def test_c10_the_defaults() -> None:
    settings, [queue] = worker_settings({}), worker_settings({}).queues
    assert (settings.concurrency, settings.polling, settings.outage_errors) == (1, Polling.RAMP, 5)
    assert queue.opening is not None
    found = {
        "phase": queue.opening.phase,
        "stop": settings.stop_timeout,
        "backoff": settings.outage_backoff,
    }
    assert found == seconds(phase=300, stop=20, backoff=30)
    assert queue.opening.at_most == 1_000
    assert read_settings({}).pause_on_budget, "a job waits for money; with the setting off it fails instead"


def test_c10_the_values_for_tests() -> None:
    settings, [queue] = worker_settings(FOR_TESTS), worker_settings(FOR_TESTS).queues
    assert queue.opening is not None
    found = {
        "poll": settings.poll,
        "phase": queue.opening.phase,
        "stop": settings.stop_timeout,
        "backoff": settings.outage_backoff,
    }
    assert found == seconds(poll=0.1, phase=10, stop=2, backoff=5)
    assert settings.outage_errors == 3
    assert read_env_file(FOLDER / ".env.test") == FOR_TESTS


@pytest.mark.parametrize("polling", ["ramp", "none", "fixed"])
def test_c10_polling_is_a_choice_of_three(polling: str) -> None:
    assert worker_settings({"PULSE_POLLING": polling}).polling == polling


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PULSE_WORKERS", "0", "PULSE_WORKERS must be a whole number from 1 to 1000, got 0"),
        ("PULSE_POLLING", "often", "PULSE_POLLING must be one of ramp, none, fixed, got 'often'"),
        ("PULSE_START_PHASE", "soon", "PULSE_START_PHASE.*soon"),
        ("PULSE_STOP_TIMEOUT", "-1s", "PULSE_STOP_TIMEOUT.*-1s"),
        ("PULSE_MAX_CONSECUTIVE_ERRORS", "few", "PULSE_MAX_CONSECUTIVE_ERRORS must be a whole number.*'few'"),
        ("PULSE_MAX_BACKOFF", "0s", "PULSE_MAX_BACKOFF"),
    ],
)
def test_c10_what_cannot_be_meant_is_refused_by_name(variable: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        worker_settings({variable: value})


@pytest.mark.parametrize("value", ["much", "-1", "inf"])
def test_c10_an_amount_that_cannot_be_meant_is_refused_by_name(value: str) -> None:
    with pytest.raises(SettingsError, match=f"PULSE_DAILY_BUDGET must be an amount of 0 or more.*'{value}'"):
        read_settings({"PULSE_DAILY_BUDGET": value})


def test_c10_every_variable_is_in_the_example_with_its_default() -> None:
    """A process that is started with the example has the defaults."""
    example = read_env_file(FOLDER / ".env.example")
    assert worker_settings(example) == worker_settings({})
    assert read_settings(example) == read_settings({})
    source = (FOLDER / "settings.py").read_text(encoding="utf-8")
    used = set(re.findall(r"PULSE_[A-Z0-9_]+", source))
    assert used == set(example)


@SQLITE
async def test_c10_what_the_application_opened_is_closed_after_the_workers(box: Sandbox) -> None:
    was_open: list[bool] = []

    def note(_: Event) -> None:
        was_open.append(model.is_open)

    forget = app.subscribe(note, WorkerClosed)
    open_now = [model.is_open]
    async with at_work():
        open_now.append(model.is_open)
    forget()
    assert was_open == [True], "still open when the worker has closed"
    assert [*open_now, model.is_open] == [False, True, False], "open before the first job, and closed at the end"
    del box
