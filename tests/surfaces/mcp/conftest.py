"""Agents: clients of the SDK on a server of ours, in this process, with the test's store and clock."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, Implementation

from perdure.domain.operate.access import Scope
from perdure.kinds.kind import Registry
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller
from perdure.surfaces.mcp.ground import Ground
from perdure.surfaces.mcp.server import make_server
from perdure.surfaces.mcp.settings import McpSettings

LEGACY = "legacy"


class Person:
    """Answers what a server asks, and remembers the questions."""

    def __init__(self, action: str = "accept", *, approve: bool = True) -> None:
        self.action = action
        self.approve = approve
        self.asked: list[str] = []

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002 - the SDK gives it
        """Answer one question."""
        self.asked.append(params.message)
        content: Any = {"approve": self.approve} if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)  # type: ignore[arg-type]


class Agents:
    """Makes clients. `settings` are those of the server."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def client(
        self,
        scope: Scope = Scope.OPERATE,
        *,
        name: str = "claude-code",
        who: str = "ada",
        person: Person | None = None,
        mode: Any = "auto",
        kinds: Registry | None = None,
        settings: McpSettings | None = None,
    ) -> Client:
        """A client of a server that takes its caller for `who`."""

        async def opened() -> Store:
            return self.store

        caller = Caller(name=who, scope=scope, source="mcp stdio")
        known = settings or McpSettings(commands=True)
        server = make_server(Ground(opened, known, kinds=kinds, at_terminal=caller))
        return Client(
            server,
            mode=mode,
            elicitation_callback=person,
            client_info=Implementation(name=name, version="1"),
            read_timeout_seconds=30,
        )


@pytest.fixture
def agents(store: Store) -> Agents:
    """Agents on both engines, with the test's clock."""
    return Agents(store)


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool, which must not fail."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The error of a tool, which must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    """All text of an answer."""
    return "\n".join(getattr(part, "text", "") for part in result.content)
