"""`perdure audit`: who did what."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import enqueue, only
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.operate.audit import By, Note
from perdure.surfaces.cli.exits import Exit


def test_an_entry_is_added_and_listed(cli: Cli, arrange: Arrange[Any]) -> None:
    job_id = arrange(enqueue)
    added = cli("audit", "add", "reviewed", "--job", job_id, "--details", '{"ticket": 42}', "--json").json
    assert (added["action"], added["job_id"], added["details"]) == ("reviewed", job_id, {"ticket": 42})
    assert added["actor"].startswith("cli:")
    assert added["actor_type"] == "person"
    cli("jobs", "cancel", job_id, "--why", "not needed")
    document = cli("audit", "list", "--job", job_id, "--json").json
    assert [entry["action"] for entry in document["entries"]] == ["cancel", "reviewed"]
    assert document["next"] is None
    plain = cli("audit", "list", "--actor", added["actor"], "--since", "-1h").out
    for piece in ("reviewed", job_id, "ticket=42", "why=not needed", added["actor"]):
        assert piece in plain
    assert cli("audit", "list", "--until", "-1h").out == "No entries.\n"
    assert cli("audit", "list", "--action", "reviewed", "--json").json["entries"] == [added]


@pytest.mark.parametrize("words", [("list",), ("add", "x")])
def test_an_unknown_job_is_an_error(cli: Cli, arrange: Arrange[Any], words: tuple[str, ...]) -> None:
    arrange(enqueue)
    answer = cli("audit", *words, "--job", "nine")
    assert (answer.code, answer.out) == (Exit.NOT_FOUND, "")
    assert "there is no job with the ref 'nine'" in answer.err


def test_pages_of_the_trail_follow_each_other(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(enqueue)
    for word in ("one", "two", "three"):
        cli("audit", "add", word)
    first = cli("audit", "list", "--limit", "2", "--json").json
    second = cli("audit", "list", "--limit", "2", "--before", str(first["next"]), "--json").json
    assert [entry["action"] for page in (first, second) for entry in page["entries"]] == ["three", "two", "one"]
    assert f"--before {first['next']}" in cli("audit", "list", "--limit", "2").out


def test_who_cancelled_a_job_is_on_its_page(cli: Cli, arrange: Arrange[Any]) -> None:
    job_id = arrange(enqueue)
    arrange(lambda store: store.cancel(only(job_id), By("ada"), 1))
    assert cli("jobs", "show", job_id, "--json").json["job"]["cancelled_by"] == "ada"
    page = cli("jobs", "show", job_id).out
    assert "cancelled by" in page
    assert "ada" in page


def test_hostile_text_in_the_trail_is_made_visible(cli: Cli, arrange: Arrange[Any]) -> None:
    nasty = By("a\x1b[31m", "w\x1b[2J", "s\x1b[2J")
    arrange(lambda store: store.record(nasty, Note(action="b\r", details={"c\x1b": "d\x1b[2J"})))
    answer = cli("audit", "list")
    assert "\x1b" not in answer.out.replace("\x1b[0m", "")
    assert answer.code == Exit.OK


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("audit", "list", "--since", "soon"), "--since"),
        (("audit", "list", "--limit", "0"), "--limit"),
        (("audit", "list", "--before", "0"), "--before"),
        (("audit", "list", "--actor", ""), "--actor"),
        (("audit", "add", ""), "ACTION"),
        (("audit", "add", "x", "--details", "{"), "--details"),
        (("audit", "add", "x", "--details", "[1]"), "--details"),
    ],
)
def test_bad_input_names_the_field(cli: Cli, arrange: Arrange[Any], words: tuple[str, ...], field: str) -> None:
    arrange(enqueue)
    answer = cli(*words, "--json")
    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert answer.error["field"] == field
