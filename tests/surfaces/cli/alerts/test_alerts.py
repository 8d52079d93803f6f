"""`perdure alerts`: rules and channels are added, shown, paused and deleted; secrets go in and never come out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import enqueue
from tests.surfaces.conftest import Arrange, Cli

from perdure.operate.alerts.sealing import KEY_VARIABLE, new_key
from perdure.surfaces.cli.exits import Exit

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
DEEP = ("alerts", "add", "deep", "--when", "depth", "--to", "ops", "--limit", "1", "--queue", "mail")


def test_a_rule_and_its_channel_from_the_first_to_the_last(
    cli: Cli, arrange: Arrange[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    arrange(lambda store: enqueue(store, queue="mail"))
    assert cli("alerts", "list").out.startswith("No rules: ")
    assert cli("alerts", "channels", "list").out.startswith("No channels: ")
    added = cli("alerts", "channels", "add", "ops", "--address", "-", typed=f"{SLACK}\n")
    assert added.out.splitlines()[0] == "Channel ops saved: slack://•••• (stored encrypted)"
    preview = cli(*DEEP, "--preview", "--json").json
    assert preview["title"]
    assert cli("alerts", "list", "--json").json["rules"] == []
    assert cli(*DEEP, "--why", "spring").code == Exit.OK
    listed = cli("alerts", "list")
    assert "deep" in listed.out
    assert cli("alerts", "preview", "deep").out
    assert cli("alerts", "pause", "deep", "--until", "+2h", "--json").json["rule"]["paused_until"] is not None
    assert cli("alerts", "resume", "deep", "--json").json["rule"]["paused_at"] is None
    assert cli("alerts", "resume", "deep").code == Exit.CONFLICT
    sent = cli("alerts", "test", "ops")
    assert sent.out.startswith("ops: on its way, job ")
    assert cli("alerts", "test", "ops", "--wait", "0.1").code == Exit.FAILED
    assert len(cli("alerts", "notices", "--json").json["notices"]) == 2
    assert cli("alerts", "history").out == "No alerts.\n"
    assert cli("alerts", "channels", "delete", "ops", "--yes").code == Exit.CONFLICT
    assert cli("alerts", "delete", "deep", "--yes").code == Exit.OK
    assert cli("alerts", "channels", "delete", "ops", "--yes").code == Exit.OK
    told = [cli("audit", "list", "--json").out, added.out, cli("alerts", "notices", "--json").out]
    assert not [text for text in told if "TIiajk" in text]


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("alerts", "add", "a", "--when", "dept", "--to", "ops"), Exit.USAGE, "--when"),
        (("alerts", "add", "a", "--when", "depth", "--to", "ops", "--limit", "many"), Exit.USAGE, "--limit"),
        (("alerts", "add", "a", "--when", "depth", "--to", "ops", "--limit", "5"), Exit.NOT_FOUND, "ops"),
        (("alerts", "pause", "a", "--until", "noon"), Exit.USAGE, "--until"),
        (("alerts", "resume", "a"), Exit.NOT_FOUND, "a"),
        (("alerts", "delete", "a", "--yes"), Exit.NOT_FOUND, "a"),
        (("alerts", "channels", "add", "c", "--address", "nonsense"), Exit.USAGE, "--address"),
        (("alerts", "channels", "delete", "c", "--yes"), Exit.NOT_FOUND, "c"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_option(
    cli: Cli, arrange: Arrange[Any], words: tuple[str, ...], code: Exit, said: str
) -> None:
    arrange(enqueue)
    answer = cli(*words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
