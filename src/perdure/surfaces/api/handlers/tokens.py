"""Access tokens, for admins."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.operate.access import Scope, TokenView
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.route import Call, Given


class TokenList(Struct, frozen=True):
    """All tokens, also revoked and expired ones, oldest first."""

    tokens: tuple[TokenView, ...]


class NewToken(Given, frozen=True, kw_only=True):
    """A new token. `expires` is a duration such as "30d"; omitted: it does not expire."""

    name: str
    scope: Scope
    expires: str | None = None
    why: str | None = None


class MadeToken(Struct, frozen=True, kw_only=True):
    """A new token and its secret, which is not stored and cannot be shown again."""

    token: TokenView
    secret: str


async def list_tokens(call: Call[None, None]) -> TokenList:
    """List access tokens."""
    return TokenList(tuple(await call.desk.tokens()))


async def create_token(call: Call[None, NewToken]) -> MadeToken:
    """Create an access token; its secret is shown once."""
    body = call.body
    token, secret = await call.desk.create_token(body.name, body.scope, expires=body.expires, why=body.why)
    return MadeToken(token=token, secret=secret)


async def revoke_token(call: Call[None, Because]) -> TokenView:
    """Revoke an access token by its id or name; sessions opened with it end."""
    return await call.desk.revoke_token(call.path["id"], why=call.body.why)
