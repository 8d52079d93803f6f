"""Bulk commands: each batch, its cursor and its counts are one transaction that holds the command's row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Wire
from perdure.engines.postgres.operate.commands.audit import Audit, by_columns
from perdure.engines.postgres.operate.commands.commands import CommandPart
from perdure.engines.shared.operate.bulk_records import (
    COLUMNS,
    bulk_view,
    ended,
    new_columns,
    progress_columns,
    started,
)
from perdure.errors import ConflictError
from perdure.storage.operate.bulk import BulkHold, BulkProgress, BulkState, BulkView, NewBulk


class BulkPart:
    """Bulk commands of the store."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, commands: CommandPart) -> None:
        self._sql = naming.statements("operate/commands/bulk.sql")
        self._pool = pool
        self._clock = clock
        self._commands = commands
        self._audit = Audit(naming, clock)

    async def start_bulk(self, new: NewBulk, by: By) -> BulkView:
        """Store a bulk command."""
        who = by_columns(by)
        params = new_columns(new) | {name: who[name] for name in ("actor", "why", "source")} | {"now": self._now()}

        async def work(wire: Wire) -> BulkView:
            rows = await wire.fetch(self._sql["start"], params)
            if not rows:
                raise ConflictError(f"this bulk command was started already: it is {new.id}")
            await self._audit.write(wire, replace(by, bulk=new.id), started(new))
            return _hold(rows[0]).view

        return await self._pool.transaction(work)

    async def take_bulk(self, runner: str, lease: timedelta, bulk_id: str | None = None) -> BulkHold | None:
        """Take up a bulk command."""
        params = {"runner": runner, "id": bulk_id, "lease": seconds_text(lease), "now": self._now()}
        taken = await self._pool.rows(self._sql["take"], params)
        return _hold(taken[0]) if taken else None

    async def advance_bulk(
        self,
        hold: BulkHold,
        ids: Sequence[JobId],
        lease: timedelta,
        account: Callable[[Sequence[JobId]], BulkProgress],
    ) -> BulkHold | None:
        """Apply the action to these jobs, and store the progress of the command."""
        view = hold.view
        which = replace(view.filter, ids=tuple(ids))
        if view.action == "delete" and ids:
            await self._commands.set_aside(which, len(ids))

        async def work(wire: Wire) -> BulkHold | None:
            if not await wire.fetch(self._sql["hold"], {"id": view.id, "token": hold.token}):
                return None
            done = await self._commands.within(wire, view.action, view.params, which, view.by) if ids else []
            params = progress_columns(account(done)) | {"id": view.id, "lease": seconds_text(lease)}
            [row] = await wire.fetch(self._sql["advance"], params | {"now": self._now()})
            after = _hold(row)
            if after.view.state is not BulkState.RUNNING:
                await self._audit.write(wire, view.by, ended(after.view))
            return after

        return await self._pool.transaction(work)

    async def stop_bulk(self, bulk_id: str, by: By) -> BulkView | None:
        """Stop a bulk command early."""

        async def work(wire: Wire) -> BulkView | None:
            stopped = await wire.fetch(self._sql["stop"], {"id": bulk_id, "now": self._now()})
            if stopped:
                view = _hold(stopped[0]).view
                await self._audit.write(wire, replace(by, bulk=bulk_id), ended(view))
                return view
            found = await wire.fetch(self._sql["bulk"], {"id": bulk_id})
            return _hold(found[0]).view if found else None

        return await self._pool.transaction(work)

    async def bulk(self, bulk_id: str) -> BulkView | None:
        """One bulk command."""
        rows = await self._pool.rows(self._sql["bulk"], {"id": bulk_id})
        return _hold(rows[0]).view if rows else None

    async def bulks(self, limit: int, before: str | None = None) -> list[BulkView]:
        """The newest bulk commands, or those before this one."""
        rows = await self._pool.rows(self._sql["bulks"], {"limit": limit, "before": before})
        return [_hold(row).view for row in rows]

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _hold(row: Row) -> BulkHold:
    *columns, cursor, token = row
    return BulkHold(bulk_view(dict(zip(COLUMNS, columns, strict=True))), token, cursor)
