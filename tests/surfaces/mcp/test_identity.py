"""Who an agent is."""

from __future__ import annotations

import getpass
import os
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.domain.operate.access import Scope
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.caller import Caller, put_caller
from perdure.surfaces.mcp.identity import agent_of, user_at_terminal

ADA = Caller(name="ada", scope=Scope.OPERATE, source="mcp 10.0.0.7")


def context(client: str | None, request: Any = None) -> Any:
    params = None if client is None else SimpleNamespace(client_info=SimpleNamespace(name=client))
    return SimpleNamespace(
        request_context=SimpleNamespace(request=request), session=SimpleNamespace(client_params=params)
    )


@pytest.mark.parametrize(
    ("client", "actor"),
    [
        ("claude-code", "mcp:claude-code@ada"),
        ("evil@root mcp:x", "mcp:evil-root-mcp-x@ada"),
        ("c" * 100, f"mcp:{'c' * 60}@ada"),
        ("\u202e@@", "mcp:unknown@ada"),
        (None, "mcp:unknown@ada"),
    ],
)
def test_the_name_that_an_agent_claims_cannot_imitate_the_verified_one(client: str | None, actor: str) -> None:
    agent = agent_of(context(client), ADA)
    assert (agent.actor, agent.source, agent.scope) == (actor, "mcp 10.0.0.7", Scope.OPERATE)


def test_over_http_the_agent_is_the_caller_that_was_let_in() -> None:
    scope: dict[str, Any] = {}
    put_caller(scope, ADA)
    assert agent_of(context("x", SimpleNamespace(scope=scope))).actor == "mcp:x@ada"
    with pytest.raises(Refused):
        agent_of(context("x"))


def test_the_user_at_the_terminal_may_act_only_where_commands_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert user_at_terminal(commands=False).scope is Scope.READ
    assert user_at_terminal(commands=True).scope is Scope.OPERATE
    assert user_at_terminal(commands=True).name.startswith("ada@")

    def unnamed() -> str:
        raise KeyError

    monkeypatch.setattr(getpass, "getuser", unnamed)
    assert user_at_terminal(commands=False).name.startswith(f"uid {os.getuid()}@")
