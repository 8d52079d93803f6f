"""The base of every tool: the caller, a desk in the agent's name, and errors that an agent can act on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

from perdure.errors import PerdureError
from perdure.kinds.kind import Registry
from perdure.operate.commands.dry_runs import DryRuns
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller
from perdure.surfaces.mcp.identity import Agent, agent_of
from perdure.surfaces.mcp.quoting import Quoter, sentence
from perdure.surfaces.mcp.refusals import Refusals
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.mcp.toolbox import SPECS

OpenStore = Callable[[], Awaitable[Store]]
"""Gives the open store of the running event loop."""

Ask = Context[Any, Any]
"""One call of an agent."""

Result = TypeVar("Result", bound=BaseModel)

QUERY_TIME_LIMIT: Final = timedelta(seconds=5)
"""How long a query may take."""

_ANSWER_FACTOR: Final = 4  # names and figures around the text of jobs


class Ground:
    """The store, the settings and the app's kinds, if its code is loaded. `at_terminal`: the stdio user."""

    def __init__(
        self,
        store: OpenStore,
        settings: McpSettings,
        *,
        kinds: Registry | None = None,
        at_terminal: Caller | None = None,
        time_limit: timedelta = QUERY_TIME_LIMIT,
    ) -> None:
        self.settings = settings
        self.kinds = kinds
        self._store = store
        self._at_terminal = at_terminal
        self._time_limit = time_limit
        self._refusals = Refusals()

    @asynccontextmanager
    async def at_desk(self, ask: Ask, tool: str) -> AsyncIterator[Desk]:
        """The desk in the agent's name, if its scope suffices; turns errors of perdure into errors of the tool."""
        agent = agent_of(ask, self._at_terminal)
        try:
            desk = Desk(await self._store(), agent.actor, agent.source, time_limit=self._time_limit)
            await self._require(agent, desk, tool)
            yield desk
        except PerdureError as error:
            raise ToolError(sentence(f"{type(error).__name__}: {error}")) from error

    async def dry_runs(self, desk: Desk) -> DryRuns:
        """The dry runs of the agent at this desk."""
        return DryRuns(await self._store(), desk.actor)

    async def refuse(self, desk: Desk, tool: str, reason: str) -> ToolError:
        """Record a refusal and return the error to raise."""
        known = sentence(reason)
        await self._refusals.record(desk, tool, known)
        return ToolError(known)

    def quoter(self) -> Quoter:
        """A quoter for the texts of one answer."""
        return Quoter(self.settings.answer_characters)

    def sized(self, answer: Result) -> Result:
        """The answer, unless it is too large for an agent to read."""
        most = _ANSWER_FACTOR * self.settings.answer_characters
        if (size := len(answer.model_dump_json())) > most:
            raise ToolError(f"the answer has {size:,} characters, {most:,} are allowed: ask for less (limit, search)")
        return answer

    async def _require(self, agent: Agent, desk: Desk, tool: str) -> None:
        needed = SPECS[tool].scope
        if agent.why_read_only is not None and not agent.scope.allows(needed):
            raise await self.refuse(
                desk, tool, f"{tool} changes something, and the desk is read-only: {agent.why_read_only}"
            )
        if not agent.scope.allows(needed):
            raise await self.refuse(
                desk,
                tool,
                f"{tool} needs the scope {needed}, and {agent.actor} has {agent.scope}: use a token that was made with "
                f"`perdure token create --scope {needed}`",
            )
