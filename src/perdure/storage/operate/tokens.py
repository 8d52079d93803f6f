"""Access tokens and the sessions of people who logged in with one.

Secrets never reach the store: it keeps their SHA-256 digests, in hex.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from perdure.domain.operate.access import Scope, TokenView
from perdure.domain.operate.audit import By


class NewToken(Struct, frozen=True, kw_only=True):
    """A token to be stored."""

    id: str
    name: str
    scope: Scope
    digest: str
    expires_at: datetime | None = None


class LiveToken(Struct, frozen=True, kw_only=True):
    """A token that is neither revoked nor expired. `is_noted`: its last use was written within the last minute."""

    token: TokenView
    digest: str
    is_noted: bool


class TokenStore(Protocol):
    """Tokens and sessions. Expiry goes by the database's clock."""

    async def add_token(self, token: NewToken, by: By) -> TokenView | None:
        """Store a token and an audit entry; None if a token that is not revoked has this name."""

    async def tokens(self) -> list[TokenView]:
        """All tokens, also revoked and expired ones, oldest first."""

    async def revoke_token(self, token_id: str, by: By) -> bool:
        """Revoke a token, end its sessions, and write an audit entry; False if it is unknown or revoked already."""

    async def live_token(self, digest: str) -> LiveToken | None:
        """The token of this digest, unless it is revoked or expired."""

    async def note_use(self, token_id: str) -> None:
        """Write that a token is used now, at most once a minute."""

    async def open_session(self, digest: str, token_id: str, lifetime: timedelta) -> None:
        """Store the digest of a session's secret, and forget sessions that are over."""

    async def session(self, digest: str) -> LiveToken | None:
        """The token of this session, unless the session is over, or the token revoked or expired.

        The digest of the answer is that of the session.
        """

    async def close_session(self, digest: str) -> None:
        """End a session; an unknown one is ignored."""

    async def shared_key(self, name: str, otherwise: str) -> str:
        """The key of this name that all processes on this database share; `otherwise` becomes it if there is none."""
