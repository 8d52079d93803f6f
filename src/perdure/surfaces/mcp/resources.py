"""Our subclass of the SDK's server: the overview and single jobs as resources, and plain errors for bad requests.

The SDK passes no request to a resource without parameters, so such a resource could not know its caller. Therefore the
overview is read here, before the SDK looks it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, Resource, Tool
from pydantic import AnyUrl, ValidationError

from perdure.surfaces.mcp.quoting import sentence
from perdure.surfaces.mcp.tools.figures import FigureTools
from perdure.surfaces.mcp.tools.jobs import JobTools

OVERVIEW: Final = "perdure://overview"
JOB: Final = "perdure://job/{job}"
_JSON: Final = "application/json"
_FIELDS_NAMED: Final = 5


class AgentServer(MCPServer[Any]):
    """The SDK's server, with a resource that knows the caller, and short errors."""

    _figures: FigureTools
    _takes: dict[str, list[str]] | None = None

    def serve_resources(self, figures: FigureTools, jobs: JobTools) -> None:
        """Serve what the tools overview and explain_job return, as JSON."""
        self._figures = figures

        @self.resource(JOB, name="job", title="One job", mime_type=_JSON)
        async def job(context: Context[Any, Any], job: str) -> str:
            """Explain one job, by its id or ref."""
            try:
                return (await jobs.explain_job(context, job)).model_dump_json()
            except ToolError as error:
                raise ResourceError(str(error)) from error

    async def list_resources(self) -> list[Resource]:
        """The overview; jobs have a template."""
        shown = Resource(uri=OVERVIEW, name="overview", title="How is it going", mime_type=_JSON)
        return [shown, *await super().list_resources()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read the overview, or a job."""
        if str(uri) != OVERVIEW or context is None:
            return await super().read_resource(uri, context)
        try:
            answer = await self._figures.overview(context)
        except ToolError as error:
            raise ResourceError(str(error)) from error
        return [ReadResourceContents(content=answer.model_dump_json(), mime_type=_JSON)]

    async def list_tools(self) -> list[Tool]:
        """The tools. Their schemas declare that unknown arguments are refused."""
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error names wrong arguments, without the details of pydantic."""
        if (takes := (await self._arguments()).get(name)) is not None and (odd := _odd(arguments, takes)):
            raise ToolError(sentence(f"{name} has no argument {odd}"))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_wrong(name, error.__cause__)) from error.__cause__
            raise

    async def _arguments(self) -> dict[str, list[str]]:
        """The names of the arguments of each tool."""
        if self._takes is None:
            self._takes = {tool.name: list(tool.input_schema["properties"]) for tool in await self.list_tools()}
        return self._takes

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Get a prompt; an unknown name or a wrong argument is an error of the caller, not a crash."""
        for prompt in await self.list_prompts():
            takes = [each.name for each in prompt.arguments or ()]
            if prompt.name == name and (odd := _odd(arguments or {}, takes)):
                raise MCPError(INVALID_PARAMS, sentence(f"Prompt {name} has no argument {odd}"))
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, sentence(str(error))) from error


def _odd(arguments: Mapping[str, Any], takes: Sequence[str]) -> str:
    """Unknown arguments, and the valid ones; empty if all are known.

    Ignoring them would do harm: a pause with a misspelt duration would last until it is resumed.
    """
    odd = [each for each in arguments if each not in takes]
    there = f"it takes {', '.join(takes)}" if takes else "it takes none"
    return f"{', '.join(map(repr, odd[:_FIELDS_NAMED]))}: {there}" if odd else ""


def _wrong(tool: str, error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:_FIELDS_NAMED])
    return sentence(f"{tool} cannot be called like this. {'; '.join(named)}")
