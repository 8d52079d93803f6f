"""What an engine does for leadership."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from perdure.domain.leadership import Lead, LeaderView


class LeaderStore(Protocol):
    """Leadership. It only avoids duplicate work: no safety depends on it."""

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        """Become or stay the leader, unless another holder's lease is live by the database's clock."""

    async def step_down(self, name: str, holder: str) -> None:
        """Give the lead up at once; does nothing if another holder has it."""

    async def leaders(self) -> list[LeaderView]:
        """The leader of each subject, by name."""
