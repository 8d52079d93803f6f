"""What an engine does for actions that are taken at most once in a period."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


class ThrottleStore(Protocol):
    """Keys that are taken for a time, by the database's clock."""

    async def once_per(self, key: str, period: timedelta, caller: str) -> bool:
        """Take a key for this period. False: another caller has it, and its period is not over.

        Of any number of concurrent callers exactly one gets True. The same `caller` gets the same answer again, so that
        a call whose answer was lost may be repeated. Keys whose period is over are deleted in passing.
        """
