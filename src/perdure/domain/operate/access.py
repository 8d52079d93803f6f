"""Who may do what from outside: scopes, and the tokens that carry them."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Scope(StrEnum):
    """What a caller may do. Each scope includes the ones before it; they compare in this order."""

    READ = "read"  # look at everything
    OPERATE = "operate"  # commands on jobs, queues, schedules
    ADMIN = "admin"  # tokens, and diagnostics of a process

    def allows(self, needed: Scope) -> bool:
        """Whether this scope is enough where `needed` is asked for."""
        return self >= needed

    def capped(self, at: Scope) -> Scope:
        """The smaller of the two."""
        return min(self, at)

    def __lt__(self, other: str) -> bool:
        return _RANK[self] < _RANK[Scope(other)]

    def __le__(self, other: str) -> bool:
        return _RANK[self] <= _RANK[Scope(other)]

    def __gt__(self, other: str) -> bool:
        return _RANK[self] > _RANK[Scope(other)]

    def __ge__(self, other: str) -> bool:
        return _RANK[self] >= _RANK[Scope(other)]


TOKEN_USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""How often the use of a token is written at most: a request that writes nothing takes no lock."""

_RANK: Final = {scope: rank for rank, scope in enumerate(Scope)}


class TokenView(Struct, frozen=True, kw_only=True):
    """An access token without its secret, which is not stored."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """Whether it is valid: neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
