"""The page about the command line: its examples run, and it leaves nothing out."""

from __future__ import annotations

import asyncio
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.builders.jobs import job_in, start
from tests.surfaces.conftest import run_cli

from perdure import App
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Schedule
from perdure.operate.alerts.rules import make_rule
from perdure.storage.schedules import Timed
from perdure.surfaces.cli.commands import command_line
from perdure.surfaces.cli.exits import Exit

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
RUNNING = {"worker", "up", "preview", "enqueue", "top"}  # need an app, or a terminal
EXAMPLES = [line.removeprefix("$ perdure ") for line in PAGE.splitlines() if line.startswith("$ perdure ")]


def declared() -> dict[str, set[str]]:
    """Every command with its long options."""
    root: Any = typer.main.get_command(command_line())
    found: dict[str, set[str]] = {}
    for name, command in root.commands.items():
        for inner, leaf in getattr(command, "commands", {"": command}).items():
            options = {option for param in leaf.params for option in param.opts if option.startswith("--")}
            found[f"{name} {inner}".strip()] = options - {"--help"}
    return found


def test_the_help_lists_each_command_once_with_those_it_belongs_to() -> None:
    told = run_cli("--help", env={"COLUMNS": "100"}).out
    listed = re.findall(r"^│ ([a-z]+) +[A-Z]", told, re.MULTILINE)
    root: Any = typer.main.get_command(command_line())
    assert sorted(listed) == sorted(root.commands)
    for near in (["jobs", "dead", "bulk"], ["schedules", "pauses", "pause", "resume"], ["migrate", "backup", "token"]):
        start = listed.index(near[0])
        assert listed[start : start + len(near)] == near


def test_help_has_no_line_that_ends_in_the_middle() -> None:
    """Typer keeps the line breaks within a paragraph: on a terminal of another width they look like accidents."""
    root: Any = typer.main.get_command(command_line())
    leaves = [
        leaf for command in root.commands.values() for leaf in getattr(command, "commands", {"": command}).values()
    ]
    ragged = [leaf.name for leaf in leaves for part in (leaf.help or "").split("\n\n") if "\n" in part.strip()]
    assert ragged == []


@pytest.mark.parametrize("command", ["jobs", "dead purge", "worker", "jobs show"])
def test_help_names_no_value_for_flags(command: str) -> None:
    answer = run_cli(*command.split(), "--help")
    assert "--help" in answer.out
    assert "bool" not in answer.out


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with a dead letter and a schedule in it, so that there is something to do."""
    where = f"sqlite:///{tmp_path / 'shop.db'}"

    async def fill() -> None:
        async with App(where) as app:
            store = await app.store()
            await job_in(JobState.DEAD, store)
            await store.spend(await start(store, queue="mail"), "tokens", 1)
            nightly = Schedule(name="nightly", kind="greet", expression="@daily")
            await store.save_schedule(Timed(nightly, await store.now()), By("test"))
            desk = await app.desk("test")
            await desk.alerts.save_channel("ops", "smtp://localhost/?from=a@example.com&to=b@example.com")
            await desk.alerts.save(make_rule("payments", "job_died", to="ops"))

    asyncio.run(fill())
    return where


@pytest.mark.parametrize("example", [text for text in EXAMPLES if text.split()[0] not in RUNNING])
def test_an_example_runs(example: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run_cli(*shlex.split(example), env={"PERDURE_URL": url})
    assert answer.code in {Exit.OK, Exit.CONFLICT}
    assert answer.err == ""


def test_every_command_and_option_has_its_place() -> None:
    for command, options in declared().items():
        assert command in PAGE
        for option in options:
            assert option in PAGE, f"{option} of {command}"


def test_every_exit_code_has_its_row() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)] == [int(code) for code in Exit]


async def test_the_desk_from_python(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    *_, code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    lines = f"async def example(app):\n{textwrap.indent(code, '    ')}"
    space: dict[str, Any] = {}
    exec(compile(lines, "cli.md", "exec"), space)  # noqa: S102 - the page's own example
    async with App(url) as app:
        await space["example"](app)
    assert capsys.readouterr().out == "0 0 0\n"
