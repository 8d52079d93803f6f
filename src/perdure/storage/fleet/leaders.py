"""What an engine does for leadership."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from perdure.domain.leadership import Lead, LeaderView


class LeaderStore(Protocol):
    """Who leads. A convenience that saves work: nothing's safety rests on it."""

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        """Become or stay the leader, unless somebody else's lease holds by the database's clock."""

    async def step_down(self, name: str, holder: str) -> None:
        """Give the lead up at once; nothing happens if it is somebody else's."""

    async def leaders(self) -> list[LeaderView]:
        """Who leads in what, by name."""
