"""Sessions of people who logged in: a cookie holds the secret, the database its digest.

So a session survives a restart of the desk, ends with its token, and cannot be made from a copy of the database. If the
database is read-only (a standby), this process keeps its sessions in memory.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from starlette.requests import cookie_parser

from perdure.clock import Clock
from perdure.domain.operate.access import TokenView
from perdure.errors import StoreRefused
from perdure.operate.commands.tokens import check_session, close_session, open_session
from perdure.storage.port import Store
from perdure.surfaces.access.requests.visit import Visit

SESSION: Final = "perdure_session"
LOGIN: Final = "perdure_login"
_SESSIONS_IN_MEMORY: Final = 1_000


class _InMemory(Struct, frozen=True):
    token_id: str
    ends_at: datetime


class Sessions:
    """Opens, finds and closes sessions."""

    def __init__(self, clock: Clock, lifetime: timedelta) -> None:
        self._clock = clock
        self._lifetime = lifetime
        self._in_memory: OrderedDict[str, _InMemory] = OrderedDict()

    async def open(self, store: Store, token: TokenView) -> str:
        """Begin a session with a new secret."""
        try:
            return await open_session(store, token, self._lifetime)
        except StoreRefused:  # it is read-only
            secret = f"pdm_{secrets.token_urlsafe(32)}"
            self._in_memory[secret] = _InMemory(token.id, self._clock.now() + self._lifetime)
            while len(self._in_memory) > _SESSIONS_IN_MEMORY:
                self._in_memory.popitem(last=False)
            return secret

    async def find(self, store: Store, secret: str) -> TokenView | None:
        """The token that opened this session, unless the session has ended."""
        kept = self._in_memory.get(secret)
        if kept is None:
            return await check_session(store, secret)
        now = await store.now()
        if self._clock.now() >= kept.ends_at:
            del self._in_memory[secret]
            return None
        return next((token for token in await store.tokens() if token.id == kept.token_id and token.is_live(now)), None)

    async def close(self, store: Store, secret: str) -> None:
        """End a session."""
        if self._in_memory.pop(secret, None) is None:
            await close_session(store, secret)


def read_cookie(visit: Visit, name: str) -> str | None:
    """The value of one of our cookies."""
    known: dict[str, str] = {}
    for header in visit.headers.getlist("cookie"):
        known |= cookie_parser(header)
    return known.get(cookie_name(visit, name)) or None


def write_cookie(visit: Visit, name: str, value: str, lifetime: timedelta) -> str:
    """A Set-Cookie header. Without a lifetime it deletes the cookie."""
    parts = [
        f"{cookie_name(visit, name)}={value}",
        f"Path={visit.prefix or '/'}",
        f"Max-Age={int(lifetime.total_seconds())}",
        "HttpOnly",
        "SameSite=Strict",
    ]
    return "; ".join([*parts, "Secure"] if visit.is_https else parts)


def cookie_name(visit: Visit, name: str) -> str:
    """The name of a cookie: it contains the port, because browsers share cookies between all ports of a host."""
    port = visit.authority.port if visit.authority else None
    named = name if port is None else f"{name}_{port}"
    return f"__Secure-{named}" if visit.is_https else named
