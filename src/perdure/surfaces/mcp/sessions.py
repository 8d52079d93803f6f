"""The sessions of each caller: a caller who opens too many loses the least recently used ones.

Clients often leave without ending their session. Without a limit for each caller, one caller could take all sessions.
"""

from __future__ import annotations

from collections import OrderedDict


class CallersSessions:
    """Which sessions each caller has, `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, OrderedDict[str, None]] = {}

    def used(self, caller: str, session: str) -> None:
        """Record that a caller has opened or used a session."""
        own = self._of.setdefault(caller, OrderedDict())
        own[session] = None
        own.move_to_end(session)

    def take_surplus(self, caller: str) -> list[str]:
        """Forget and return the surplus sessions, least recently used first."""
        own = self._of.get(caller, OrderedDict())
        return [own.popitem(last=False)[0] for _ in range(len(own) - self._most)]

    def take_all(self) -> list[tuple[str, str]]:
        """Forget all sessions, and return them with their callers."""
        found = [(caller, session) for caller, own in self._of.items() for session in own]
        self._of.clear()
        return found
