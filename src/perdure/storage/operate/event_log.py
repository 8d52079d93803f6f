"""The log of events that other programs follow."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor, EventLogState, LoggedEvent


class EventLogStore(Protocol):
    """Events are written in the transaction of the change that they report, while the log is on."""

    async def switch_event_log(self, keep: timedelta | None, by: By) -> EventLogState:
        """Log events from now on and keep them for this long; None: stop logging. Writes an audit entry.

        Events from before a period without log cannot be read.
        """

    async def event_log(self) -> EventLogState:
        """Whether events are logged, and which cursors are in reach."""

    async def read_events(self, after: Cursor, limit: int) -> list[LoggedEvent]:
        """The events after a cursor, in an order that never changes: no event ever appears before one of these.

        Raises ConflictError if the log is off, and EventsGone if events after the cursor were deleted, or the cursor is
        of another database.
        """

    async def forget_events(self, limit: int) -> int:
        """Delete at most `limit` of the oldest events, if they have expired or the log is off; returns their number."""
