"""The log of events that other programs follow."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor, EventLogState, LoggedEvent


class EventLogStore(Protocol):
    """Events are written in the transaction of the change that they report, while the log is on."""

    async def switch_event_log(self, keep: timedelta | None, by: By) -> EventLogState:
        """Log events from now on and keep them for this long; None: log no more. Writes an audit entry.

        What was logged before a time without log is out of reach.
        """

    async def event_log(self) -> EventLogState:
        """Whether events are logged, and which cursors are in reach."""

    async def read_events(self, after: Cursor, limit: int) -> list[LoggedEvent]:
        """The events behind a cursor, in an order that never changes: no event ever appears before one of these.

        Raises ConflictError if the log is off, and EventsGone if events behind the cursor are no longer kept, or the
        cursor is not of this database.
        """

    async def forget_events(self, limit: int) -> int:
        """Delete at most so many of the oldest events, if they were kept long enough or the log is off; how many."""
