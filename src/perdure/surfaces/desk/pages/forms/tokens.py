"""Access tokens, for admins: list, create, revoke. A secret is shown once, in the response to its form."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.domain.operate.access import Scope, TokenView
from perdure.errors import ArgumentError
from perdure.surfaces.desk.pages.forms.written import REFUSALS, command_line, show_form
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("tokens")
_EMPTY: Final = {"name": "", "scope": "read", "expires": ""}


@room.page("/tokens", scope=Scope.ADMIN)
async def tokens(visit: Visit) -> Response:
    """All tokens, and the form for a new one."""
    return await _tokens(visit)


@room.command("/tokens", scope=Scope.ADMIN)
async def create(visit: Visit) -> Response:
    """Make a token and show its secret. The page is never cached, and sending the form again makes no second token."""
    if visit.field("show"):
        return await _tokens(visit)
    name, expires = visit.field("name").strip(), visit.field("expires").strip()
    try:
        if not name:
            raise ArgumentError("name", "is missing: write who will use the token")
        made, secret = await visit.desk.create_token(name, visit.field("scope"), expires=expires or None, why=visit.why)
    except REFUSALS as error:
        return await _tokens(visit, error)
    return await _tokens(visit, made=made, secret=secret)


@room.command("/tokens/{id}/revoke", scope=Scope.ADMIN, confirm="Revoke this token? Sessions opened with it end.")
async def revoke(visit: Visit) -> Response:
    """Revoke a token."""
    gone = await visit.desk.revoke_token(visit.path("id"), why=visit.why)
    return visit.done(f"Token {gone.name} is revoked.", back="/tokens")


async def _tokens(
    visit: Visit, error: Exception | None = None, *, made: TokenView | None = None, secret: str = ""
) -> Response:
    written = {"name": visit.field("name").strip() or "NAME", "scope": visit.field("scope") or "read"}
    more = {"expires": visit.field("expires").strip(), "why": visit.field("why").strip()}
    return await show_form(
        visit,
        "pages/forms/tokens.html",
        title="Tokens",
        usual=_EMPTY,
        error=error,
        made=made,
        secret=secret,
        tokens=await visit.desk.tokens(),
        now=await visit.now(),
        scopes=[(scope.value, scope.value) for scope in Scope],
        cli_line=command_line(["token", "create"], {**written, **more}),
    )
