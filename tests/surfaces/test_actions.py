"""The page of actions: every command of the API, the desk and the command line stands in it, and it names no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from perdure.surfaces.api.routes import ROUTES
from perdure.surfaces.cli.commands import command_line
from perdure.surfaces.desk.pages import ROOMS

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reference" / "actions.md").read_text(encoding="utf-8")
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| action")
]
NOWHERE: Final = "\N{EN DASH}"
DESK: Final = {  # each command of the desk, and the same in the API
    "/jobs/{id}/requeue": "POST /jobs/{id}/requeue",
    "/jobs/{id}/cancel": "POST /jobs/{id}/cancel",
    "/jobs/{id}/run-now": "POST /jobs/{id}/run_now",
    "/jobs/{id}/remedy": "POST /jobs/{id}/run_now",
    "/jobs/{id}/reschedule": "POST /jobs/{id}/reschedule",
    "/jobs/{id}/mark": "POST /jobs/{id}/mark",
    "/jobs/{id}/delete": "POST /jobs/{id}/delete",
    "/jobs/{id}/answer": "POST /jobs/{id}/approvals/{name}",
    "/approvals/{id}/answer": "POST /jobs/{id}/approvals/{name}",
    "/dead/{fingerprint}/probe": "POST /jobs/{id}/requeue",
    "/jobs": "POST /commands/{command}",
    "/bulk": "POST /bulk",
    "/bulk/{id}/stop": "POST /bulk/{id}/stop",
    "/queues/{name}/pause": "POST /queues/{name}/pause",
    "/queues/{name}/resume": "POST /queues/{name}/resume",
    "/kinds/{name}/pause": "POST /kinds/{name}/pause",
    "/kinds/{name}/resume": "POST /kinds/{name}/resume",
    "/pause": "POST /pauses",
    "/gates/pauses/{id}/resume": "DELETE /pauses/{id}",
    "/gates/breakers/{name}/open": "POST /breakers/{name}/open",
    "/gates/breakers/{name}/close": "POST /breakers/{name}/close",
    "/schedules": "PUT /schedules/{name}",
    "/schedules/{name}/delete": "DELETE /schedules/{name}",
    "/schedules/{name}/pause": "POST /schedules/{name}/pause",
    "/schedules/{name}/resume": "POST /schedules/{name}/resume",
    "/schedules/{name}/trigger": "POST /schedules/{name}/trigger",
    "/schedules/{name}/backfill": "POST /schedules/{name}/backfill",
    "/workers/quiet": "POST /workers/quiet",
    "/workers/loud": "POST /workers/loud",
    "/workers/{id}/quiet": "POST /workers/{name}/quiet",
    "/workers/{id}/loud": "POST /workers/{name}/loud",
    "/enqueue": "POST /jobs",
    "/emit": "POST /events",
    "/webhooks": "PUT /webhooks/{name}",
    "/webhooks/{name}/pause": "POST /webhooks/{name}/pause",
    "/webhooks/{name}/resume": "POST /webhooks/{name}/resume",
    "/webhooks/{name}/test": "POST /webhooks/{name}/test",
    "/webhooks/{name}/delete": "DELETE /webhooks/{name}",
    "/alerts/rules": "PUT /alerts/rules/{name}",
    "/alerts/rules/{name}/pause": "POST /alerts/rules/{name}/pause",
    "/alerts/rules/{name}/resume": "POST /alerts/rules/{name}/resume",
    "/alerts/rules/{name}/delete": "DELETE /alerts/rules/{name}",
    "/alerts/channels": "PUT /alerts/channels/{name}",
    "/alerts/channels/{name}/test": "POST /alerts/test",
    "/alerts/channels/{name}/delete": "DELETE /alerts/channels/{name}",
    "/tokens": "POST /tokens",
    "/tokens/{id}/revoke": "DELETE /tokens/{id}",
}


def named(cell: str, between: str) -> Iterator[str]:
    """What a cell names: a word alone stands for the one before it with another last word."""
    before = ""
    for name in re.findall(r"`([^`]+)`", cell):
        if name.startswith("--"):
            continue
        before = name if " " in name else before.rpartition(between)[0] + between + name
        yield before


def leaves(command: Any, path: str = "perdure") -> Iterator[tuple[str, set[str]]]:
    """Every command that does something, with its options."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, {option for param in command.params for option in param.opts}
    else:
        for name, one in inner.items():
            yield from leaves(one, f"{path} {name}")


COMMANDS: Final = dict(leaves(get_command(command_line())))
OF_API: Final = {route for row in ROWS for route in named(row[2], "/")}
OF_CLI: Final = {command for row in ROWS for command in named(row[3], " ")}


def test_every_command_of_the_api_is_there_and_no_other() -> None:
    there = {f"{route.method} {route.path}" for route in ROUTES}
    assert OF_API - there == set()
    assert {route for route in there if not route.startswith("GET ")} - OF_API == set()


def test_every_action_of_the_api_is_a_command_too() -> None:
    without = [row for row in ROWS if row[2] != NOWHERE and not re.search(r"`perdure |the same|signals", row[3])]
    assert without == []


def test_every_command_that_changes_something_is_there_and_no_other() -> None:
    changing = {path for path, options in COMMANDS.items() if "--why" in options}
    assert {"perdure jobs mark", "perdure doctor", "perdure alerts channels add"} <= changing
    assert changing - OF_CLI == set()
    assert OF_CLI - set(COMMANDS) == set()


def test_every_command_of_the_desk_has_its_row() -> None:
    of_desk = {entry.path.replace(":path", "") for room in ROOMS for entry in room.entries if entry.method == "POST"}
    assert of_desk == set(DESK)
    shown = {route for row in ROWS if row[1] != NOWHERE for route in named(row[2], "/")}
    assert set(DESK.values()) <= shown


@pytest.mark.parametrize("path", sorted(path for path in COMMANDS if path.split()[-1] in {"delete", "purge"}))
def test_every_command_that_deletes_asks_first(path: str) -> None:
    assert "--yes" in COMMANDS[path]


def test_every_command_has_json_or_says_that_it_has_a_format_of_its_own() -> None:
    without = sorted(path.removeprefix("perdure ") for path, options in COMMANDS.items() if "--json" not in options)
    assert without == ["alerts key", "mcp", "metrics dashboard", "metrics rules", "metrics show", "top"]
