"""The caller of a tool: the token or user that admits the agent, and the name that the agent claims.

The agent's own name is unverified, so it grants nothing: the audit trail shows it beside the verified name.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from typing import Any, Final

from mcp.server.mcpserver import Context
from msgspec import Struct

from perdure.domain.operate.access import Scope
from perdure.surfaces.access.caller import Caller, caller_of

_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
_CLIENT_NAME_LIMIT_CHARACTERS: Final = 60
_UNKNOWN: Final = "unknown"


class Agent(Struct, frozen=True, kw_only=True):
    """An agent: its name in the audit trail, the source of its commands, what it may do, and why it may only read."""

    actor: str
    source: str
    scope: Scope
    why_read_only: str | None = None


def agent_of(context: Context[Any, Any], at_terminal: Caller | None = None) -> Agent:
    """The agent: of the user whose client started this process, or of the caller that the access layer admitted."""
    request = context.request_context.request
    caller = at_terminal or caller_of({} if request is None else request.scope)
    return Agent(
        actor=f"mcp:{_client(context)}@{caller.name}",
        source=caller.source,
        scope=caller.scope,
        why_read_only=caller.why_read_only,
    )


def user_at_terminal(*, commands: bool) -> Caller:
    """The caller over stdio: the user whose client has started this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for this user
        user = f"uid {os.getuid()}"
    scope = Scope.OPERATE if commands else Scope.READ
    return Caller(name=f"{user}@{socket.gethostname()}", scope=scope, source="mcp stdio")


def _client(context: Context[Any, Any]) -> str:
    """The agent's own name, in characters that cannot imitate another part of the actor."""
    params = context.session.client_params
    word = (
        _ODD.sub("-", params.client_info.name)[:_CLIENT_NAME_LIMIT_CHARACTERS].strip("-") if params is not None else ""
    )
    return word or _UNKNOWN
