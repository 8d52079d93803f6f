"""Actions that are taken at most once in a period, across the whole fleet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.errors import ArgumentError
from perdure.storage.throttle import ThrottleStore

KEY_LIMIT_CHARACTERS: Final = 200


class Throttle(Struct, frozen=True):
    """One question whether an action may be taken now; asked again it gets the same answer."""

    key: str
    period: timedelta
    caller: str

    async def ask(self, store: ThrottleStore) -> bool:
        """Whether the caller may take the action."""
        return await store.once_per(self.key, self.period, self.caller)


def throttle(period: Duration, key: Any) -> Throttle:
    """Check the arguments: a valid key, and a period longer than 0."""
    if not isinstance(key, str) or not key.strip() or not key.isprintable() or len(key) > KEY_LIMIT_CHARACTERS:
        shown = str(key)[:KEY_LIMIT_CHARACTERS]
        problem = f"must be 1 to {KEY_LIMIT_CHARACTERS} printable characters, as in 'alert:42', got {shown!r}"
        raise ArgumentError("key", problem)
    span = parse_duration("period", period)
    if not span:
        raise ArgumentError("period", f"must be longer than 0, got {format_duration(span)}")
    return Throttle(key, span, uuid4().hex)
