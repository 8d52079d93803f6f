"""The reference says what the code says: names, parameters, defaults, events and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools import metric_tables
from tools.event_tables import PAGE, render

import perdure
from perdure import errors, events
from perdure.domain.duration import format_duration
from perdure.operate.commands.calendar import Calendar
from perdure.operate.desk import Desk
from perdure.signals.metrics.catalogue import METRICS
from perdure.storage.records import Keep
from perdure.surfaces.cli.workers import worker as worker_command

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \|", re.MULTILINE)
TEST_FILE = re.compile(r"`(tests/[\w/.]+)`")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """What stands under a heading, down to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text_of(page), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no section {heading!r}"
    return found[1]


def table(page: str, heading: str) -> dict[str, str]:
    """The parameters that a section lists, with their defaults as they are written there."""
    return {name: default.strip().strip("`") for name, default in ROW.findall(section(page, heading))}


def written(default: Any) -> str | None:
    """A default as the reference writes it; None where the words are the reference's own."""
    match default:
        case timedelta():
            return format_duration(default)
        case None | bool() | int() | str() | ():
            return repr(str(default) if isinstance(default, str) else default).replace("'", '"')
        case _:
            return None


def parameters(of: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    for parameter in inspect.signature(of).parameters.values():
        if parameter.name not in {"self", "handler"} and parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter.name, parameter.default


@pytest.mark.parametrize(
    ("page", "heading", "of"),
    [
        ("reference/python-api.md", "App", perdure.App),
        ("reference/python-api.md", "Declaring a job", perdure.App._declare),
        ("reference/python-api.md", "Schedules", perdure.App.cron),
        ("reference/python-api.md", "Periodic functions", perdure.App.every),
        ("reference/python-api.md", "Job", perdure.Job.using),
        ("reference/python-api.md", "Retry", perdure.Retry),
        ("reference/python-api.md", "Unique", perdure.Unique),
        ("reference/python-api.md", "HttpTriage", perdure.HttpTriage),
    ],
)
def test_every_parameter_is_listed_with_its_default(page: str, heading: str, of: Callable[..., Any]) -> None:
    listed = table(page, heading)
    real = dict(parameters(of))
    assert listed.keys() == real.keys()
    for name, default in real.items():
        expected = written(default)
        assert expected is None or listed[name].strip('"') == expected.strip('"'), name


@pytest.mark.parametrize("heading_and_struct", [("Worker", perdure.WorkerSettings), ("Worker", Keep)])
def test_every_setting_of_a_worker_is_listed_with_its_default(
    heading_and_struct: tuple[str, type[msgspec.Struct]],
) -> None:
    heading, struct = heading_and_struct
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", section("reference/settings.md", heading), re.MULTILINE)
    listed = dict(rows)
    for field in msgspec.structs.fields(struct):
        default = written(field.default)
        assert field.name in listed
        if default is not None:
            assert listed[field.name] == default.strip('"'), field.name


def test_the_settings_name_every_option_of_the_worker_command() -> None:
    text = text_of("reference/settings.md") + text_of("how-to/run-workers.md") + text_of("how-to/run-on-postgresql.md")
    logging = {"log_format", "log_level"}
    for name in inspect.signature(worker_command.worker).parameters:
        option = f"--{name.removeprefix('as_').replace('_', '-')}"
        assert name == "app" or name in logging or option in text, option


@pytest.mark.parametrize("name", perdure.__all__)
def test_every_public_name_is_in_the_python_reference(name: str) -> None:
    assert re.search(rf"(`|## ){name}\b", text_of("reference/python-api.md"))


def test_every_method_of_the_desk_and_its_calendar_is_listed() -> None:
    desk = section("reference/python-api.md", "The desk")
    shared = {"act", "preview", "save"}  # what the command line and app.schedule are made of
    for name in (*dir(Desk), *dir(Calendar)):
        assert name.startswith("_") or name in shared or re.search(rf"`(await )?{name}[(`]", desk), name


def test_every_field_of_a_job_view_and_member_of_the_context_is_explained() -> None:
    view = section("reference/python-api.md", "JobView")
    for field in perdure.JobView.__struct_fields__:
        assert f"`{field}`" in view, field
    context = section("reference/python-api.md", "Context")
    for name in (name for name in vars(perdure.Context) if not name.startswith("_") and name != "effects"):
        assert f"`{name}`" in context or f"`{name}()`" in context, name


def test_every_event_is_listed_as_it_is() -> None:
    """Out of date? Run `python tools/event_tables.py`."""
    text = PAGE.read_text(encoding="utf-8")
    assert all(text.count(f"\n| `{event.__name__}` |") == 2 for event in events.Event.__subclasses__())
    assert text == render(text)


def test_every_metric_is_listed_as_it_is() -> None:
    """Out of date? Run `python tools/metric_tables.py`."""
    text = metric_tables.PAGE.read_text(encoding="utf-8")
    assert text.count("\n| `perdure_") == len(METRICS)
    assert text == metric_tables.render(text)


def test_every_error_is_listed_with_its_parents() -> None:
    text = text_of("reference/errors.md")
    for error in vars(errors).values():
        if inspect.isclass(error) and issubclass(error, errors.PerdureError):
            parents = ", ".join(f"`{parent.__name__}`" for parent in error.__bases__)
            assert f"| `{error.__name__}` | {parents} |" in text


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_tests_that_are_named_exist(page: Path) -> None:
    for name in TEST_FILE.findall(page.read_text(encoding="utf-8")):
        assert (DOCS.parent / name).exists(), name
