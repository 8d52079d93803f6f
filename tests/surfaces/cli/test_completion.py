"""The shell is offered names from the database, and never one that means something to a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer
from tests.support.builders.jobs import a_job
from tests.surfaces.conftest import Arrange

from perdure.domain.schedule import Schedule
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.cli import _called, completion
from perdure.surfaces.cli.commands import command_line

HOSTILE = (
    'a\\" \\$(touch pwned) \\"',  # zsh evaluates what typer offers it: this name ran
    "greet; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "greet'",
    "> pwned",
    "*",
    "--all",
    "tidy up",
)
HARMLESS = ["greet", "größe", "host:4711", "shop.mail/urgent@2"]


def test_a_name_that_means_something_to_a_shell_is_not_offered(
    arrange: Arrange[Any], engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrange(lambda store: store.insert([a_job(kind=name, queue=name, tags=(name,)) for name in (*HOSTILE, *HARMLESS)]))
    monkeypatch.setenv("PERDURE_URL", engine_url)
    assert completion.complete_kind("") == HARMLESS
    assert completion.complete_queue("") == HARMLESS
    found = completion.complete_search("kind:")
    assert "kind:greet" in found
    assert not any(set(text) & set("\\\"'`$;&|<>*") for text in found)


def test_the_states_are_offered() -> None:
    assert completion.complete_state("re") == ["ready", "retrying"]


def test_the_database_on_the_line_is_asked(arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.insert([a_job(kind="greet")]))
    root: Any = typer.main.get_command(command_line())
    listing = root.commands["jobs"].commands["list"]
    line = ["--url", engine_url, "--kind"]
    context = listing.make_context("list", line[:2], resilient_parsing=True)
    assert completion.complete_kind("g", context) == ["greet"]


async def name_things(store: Store) -> None:
    desk = Desk(store, "ada")
    await desk.calendar.save(Schedule(name="nightly", kind="greet", expression="@daily"))
    await desk.holds.open_breaker("gateway")
    await desk.holds.pause(queue="mail")
    await desk.alerts.save_channel("ops", "env:OPS_ADDRESS")
    await desk.webhooks.save("crm", "https://crm.example/h")
    await desk.create_token("alice", "read")


@pytest.mark.parametrize(
    ("complete", "offered"),
    [
        (completion.complete_schedule, ["nightly"]),
        (completion.complete_breaker, ["gateway"]),
        (completion.complete_channel, ["ops"]),
        (completion.complete_webhook, ["crm"]),
        (completion.complete_token, ["alice"]),
    ],
)
def test_things_are_offered_by_name(
    complete: Callable[[str], list[str]],
    offered: list[str],
    arrange: Arrange[Any],
    engine_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrange(name_things)
    monkeypatch.setenv("PERDURE_URL", engine_url)
    assert complete("") == offered
    assert complete("?") == []


@pytest.mark.parametrize(
    ("line", "called"),
    [
        ({"COMP_WORDS": "perdure\njobs\nlist\n--kind\n"}, ["jobs"]),
        ({"_TYPER_COMPLETE_ARGS": "perdure pause --queue m"}, ["pause"]),
        ({"_TYPER_COMPLETE_ARGS": "perdure pause "}, ["pause"]),
        ({"_TYPER_COMPLETE_ARGS": "perdure pause"}, []),  # or pauses
        ({"_TYPER_COMPLETE_ARGS": "perdure "}, []),
        ({}, []),
    ],
)
def test_only_the_command_on_the_line_is_loaded(
    line: dict[str, str], called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_PERDURE_COMPLETE", "complete_bash")
    for name, value in line.items():
        monkeypatch.setenv(name, value)
    assert _called() == called
