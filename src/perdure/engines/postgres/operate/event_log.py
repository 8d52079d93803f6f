"""The log of events. Triggers write it while it is switched on.

Transactions commit in another order than that in which they write, so an event could appear behind one that was read
already. Each event keeps the id of its transaction. Events are read in the order of these ids, and only those of
transactions that began before every one that still runs: their events are complete. A transaction that writes for long
delays the events of later ones until it ends.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from perdure.clock import Clock
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor, EventLogState, LoggedEvent
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Wire
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.webhook_records import check_reach, log_switched
from perdure.errors import StoreRefused


class EventLogPart:
    """The event log of the store."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/event_log.sql")
        self._pool = pool
        self._clock = clock
        self._audit = Audit(naming, clock)

    async def switch_event_log(self, keep: timedelta | None, by: By) -> EventLogState:
        """Make or drop the triggers that write the log; raises StoreRefused unless the user owns the tables."""

        async def work(wire: Wire) -> EventLogState:
            before, _ = await self._state(wire)
            if before.is_on != (keep is not None):  # a trigger waits for running writes, so it comes first
                await self._check_owner(wire)
                await wire.fetch(self._statements["wait_briefly"])
                for statement in ("leave_ends", "leave_missed") if keep is None else ("log_ends", "log_missed"):
                    await wire.fetch(self._statements[statement])
            if keep is None:
                await wire.fetch(self._statements["switch_off"])
            else:
                params = {"keep": keep.total_seconds(), "now": self._now()}
                await wire.fetch(self._statements["switch_on"], params)
            after, _ = await self._state(wire)
            if before.keep != after.keep:
                await self._audit.write(wire, by, log_switched(before, after))
            return after

        return await self._pool.transaction(work)

    async def event_log(self) -> EventLogState:
        """Whether events are logged, and which cursors are valid."""

        async def look(wire: Wire) -> EventLogState:
            return (await self._state(wire))[0]

        return await self._pool.run(look)

    async def read_events(self, after: Cursor, limit: int) -> list[LoggedEvent]:
        """The events after a cursor."""
        params = {"xid": str(after.era), "after": after.number, "limit": limit}

        async def look(wire: Wire) -> list[LoggedEvent]:
            rows = await wire.fetch(self._statements["read"], params)
            state, newest = await self._state(wire)  # after the events: what was pruned meanwhile is noticed
            check_reach(state, after, newest)
            return [_event(row) for row in rows]

        return await self._pool.run(look)

    async def forget_events(self, limit: int) -> int:
        """Delete some expired events."""
        [[gone]] = await self._pool.rows(self._statements["forget"], {"limit": limit, "now": self._now()})
        return int(gone)

    async def _check_owner(self, wire: Wire) -> None:
        for owner, user in await wire.fetch(self._statements["owner"]):
            raise StoreRefused(
                f"the database user {user!r} cannot switch the event log: its triggers need the owner of the tables;"
                f" run `perdure events on` or `off` once as {owner!r}"
            )

    async def _state(self, wire: Asks) -> tuple[EventLogState, Cursor]:
        """The state, and a cursor that no event has reached yet."""
        for keep, since, pruned_xid, pruned_to, oldest_running, next_xid in await wire.fetch(self._statements["state"]):
            state = EventLogState(
                keep=None if keep is None else timedelta(seconds=keep),
                since=since,
                oldest=Cursor(int(pruned_xid), pruned_to),
                end=Cursor(int(oldest_running), 0),
            )
            return state, Cursor(int(next_xid), 0)
        return EventLogState(), Cursor(0, 0)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _event(row: tuple[Any, ...]) -> LoggedEvent:
    xid, number, at, type_, subject, kind, queue, tags, details = row
    return LoggedEvent(
        id=str(Cursor(int(xid), number)),
        type=type_,
        at=at,
        subject=subject,
        kind=kind,
        queue=queue,
        tags=tuple(tags or ()),
        details=msgspec.json.decode(details),
    )
