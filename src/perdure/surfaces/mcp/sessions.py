"""The sessions of each caller: a caller who opens too many loses those that were not used for longest.

Clients often go without ending their session. Without a share for each caller, one of them could take all there are.
"""

from __future__ import annotations

from collections import OrderedDict


class CallersSessions:
    """Which sessions each caller has, `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, OrderedDict[str, None]] = {}

    def used(self, caller: str, session: str) -> None:
        """Note that a caller has opened or used a session."""
        own = self._of.setdefault(caller, OrderedDict())
        own[session] = None
        own.move_to_end(session)

    def take_surplus(self, caller: str) -> list[str]:
        """Forget the sessions that are too many, those that were not used for longest first, and return them."""
        own = self._of.get(caller, OrderedDict())
        return [own.popitem(last=False)[0] for _ in range(len(own) - self._most)]

    def take_all(self) -> list[tuple[str, str]]:
        """Forget all sessions, and return them with their callers."""
        found = [(caller, session) for caller, own in self._of.items() for session in own]
        self._of.clear()
        return found
