"""Writes docs/reference/mcp-tools.md: the tools, resources and prompts of the server for agents, as it lists them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcp.types import Tool

from perdure.surfaces.mcp.ground import Ground
from perdure.surfaces.mcp.resources import AgentServer
from perdure.surfaces.mcp.server import make_server
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.mcp.toolbox import SPECS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "mcp-tools.md"
_HEAD = """# Tools for agents

What the [server for agents](../how-to/agents.md) offers. `python tools/mcp_tools.py` writes this page from the server
itself. All answers are structured, with a schema; they begin with a `notice`, and text of jobs stands under
`untrusted_text`, with the number of `cut_characters`.
"""


def page() -> str:
    """The whole page."""
    return asyncio.run(_written(make_server(Ground(_no_store, McpSettings(commands=True)))))


async def _written(server: AgentServer) -> str:
    tools = await server.list_tools()
    parts = [_HEAD]
    parts += ["## Questions\n", *_table([tool for tool in tools if not SPECS[tool.name].is_command])]
    parts += ["## Commands\n", _COMMANDS, *_table([tool for tool in tools if SPECS[tool.name].is_command])]
    parts += ["## Parameters\n", "| tool | parameter | meaning |", "|---|---|---|"]
    parts += [row for tool in tools for row in _parameters(tool)]
    parts += ["\n## Resources\n", "| address | is |", "|---|---|"]
    parts += [f"| `{each.uri}` | what `overview` returns, as JSON |" for each in await server.list_resources()]
    parts += [
        f"| `{each.uri_template}` | what `explain_job` returns, as JSON |"
        for each in await server.list_resource_templates()
    ]
    parts += ["\n## Prompts\n", "| prompt | is for |", "|---|---|"]
    parts += [f"| `{each.name}` | {each.description} |" for each in await server.list_prompts()]
    return "\n".join(parts) + "\n"


_COMMANDS = """Offered where commands are switched on; they need the scope `operate`. A call without `dry_run_id`
changes nothing. Each returns `status` (`dry_run` or `done`), `summary`, `jobs`, `skipped`, `notes` and `more_match`; a
dry run also `dry_run_id` and `expires_at`.
"""


def _table(tools: list[Tool]) -> list[str]:
    rows = ["| tool | scope | destructive | idempotent | does |", "|---|---|---|---|---|"]
    for tool in tools:
        spec = SPECS[tool.name]
        words = " ".join((tool.description or "").split())
        flags = " | ".join("yes" if flag else "no" for flag in (spec.destructive, spec.idempotent))
        rows.append(f"| `{tool.name}` | {spec.scope} | {flags} | {words} |")
    return [*rows, ""]


def _parameters(tool: Tool) -> list[str]:
    needed = tool.input_schema.get("required", [])
    fields: dict[str, dict[str, Any]] = tool.input_schema["properties"]
    return [
        f"| `{tool.name}` | `{field}`{' (needed)' if field in needed else ''} | {schema['description']} |"
        for field, schema in fields.items()
    ]


async def _no_store() -> Any:
    raise NotImplementedError("the page needs no database")


if __name__ == "__main__":
    PAGE.write_text(page())
