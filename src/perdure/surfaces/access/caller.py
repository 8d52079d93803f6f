"""The caller, as routes and pages see it."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from msgspec import Struct

from perdure.domain.operate.access import Scope
from perdure.surfaces.access.answers import Refused

LOCAL: Final = "local"
"""The name of a caller on this machine who showed no token."""

_KEY: Final = "perdure.caller"


class Caller(Struct, frozen=True, kw_only=True):
    """Who calls: `name` is the actor in the audit trail, `source` the surface and address.

    `csrf` is what forms send back as `_csrf` and scripts as X-CSRF-Token; a caller with a bearer token needs none.
    `has_session`: the caller logged in, and can sign out. `why_read_only`: why this desk lets every caller only read.
    """

    name: str
    scope: Scope
    source: str
    csrf: str | None = None
    has_session: bool = False
    why_read_only: str | None = None

    def require(self, needed: Scope) -> None:
        """Raise Refused (403) unless the caller's scope is enough."""
        if self.scope.allows(needed):
            return
        if self.why_read_only is not None:
            raise Refused(403, "Forbidden", f"This desk is read-only: {self.why_read_only}.")
        raise Refused(403, "Forbidden", f"This needs the scope {needed}; {self.name} has {self.scope}.")


def put_caller(scope: MutableMapping[str, Any], caller: Caller | None) -> None:
    """Write the caller into an ASGI scope."""
    scope[_KEY] = caller


def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """The caller of an ASGI scope; raises Refused (401) for an unknown caller of a path that is open to all."""
    caller: Caller | None = scope.get(_KEY)
    if caller is None:
        raise Refused(401, "Unauthorized", "This needs a token: send Authorization: Bearer pdr_…")
    return caller
