"""Bulk commands: each batch, its cursor and its counts are one transaction of the writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import from_micros, maybe_moment, span
from perdure.engines.shared.operate.bulk_records import (
    COLUMNS,
    bulk_view,
    ended,
    new_columns,
    progress_columns,
    started,
)
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Row
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.commands.audit import Audit, by_columns
from perdure.engines.sqlite.operate.commands.commands import CommandPart
from perdure.errors import ConflictError
from perdure.storage.operate.bulk import BulkHold, BulkProgress, BulkState, BulkView, NewBulk

_TIMES: Final = ("created_at", "changed_at")


class BulkPart:
    """Bulk commands of the store."""

    def __init__(self, database: Database, commands: CommandPart) -> None:
        self._database = database
        self._commands = commands
        self._sql = database.statements("operate/commands/bulk.sql")
        self._audit = Audit(database)

    async def start_bulk(self, new: NewBulk, by: By) -> BulkView:
        """Store a bulk command."""
        who = by_columns(by)
        params = new_columns(new) | {name: who[name] for name in ("actor", "why", "source")}

        def act(transaction: Transaction) -> BulkView:
            if not transaction.change(self._sql["start"], params | {"now": transaction.now}):
                raise ConflictError(f"this bulk command was started already: it is {new.id}")
            self._audit.write(transaction, replace(by, bulk=new.id), started(new))
            [row] = transaction.run(self._sql["bulk"], {"id": new.id})
            return _hold(row).view

        return await self._database.write(act)

    async def take_bulk(self, runner: str, lease: timedelta, bulk_id: str | None = None) -> BulkHold | None:
        """Take up a bulk command; where there is none, nothing is written."""

        def look(transaction: Transaction) -> list[Row]:
            return transaction.run(self._sql["free"], {"runner": runner, "id": bulk_id, "now": transaction.now})

        free = await self._database.read(look)
        if not free:
            return None

        def take(transaction: Transaction) -> list[Row]:
            params = {
                "runner": runner,
                "id": free[0][0],
                "now": transaction.now,
                "until": transaction.now + span(lease),
            }
            return transaction.run(self._sql["take"], params)

        taken = await self._database.write(take)
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
            await self._commands.set_aside(which, view.by, len(ids))

        def act(transaction: Transaction) -> BulkHold | None:
            if not transaction.run(self._sql["held"], {"id": view.id, "token": hold.token}):
                return None
            done = self._commands.within(transaction, view.action, view.params, which, view.by) if ids else []
            params = progress_columns(account(done)) | {"id": view.id, "until": transaction.now + span(lease)}
            [row] = transaction.run(self._sql["advance"], params | {"now": transaction.now})
            after = _hold(row)
            if after.view.state is not BulkState.RUNNING:
                self._audit.write(transaction, view.by, ended(after.view))
            return after

        return await self._database.write(act)

    async def stop_bulk(self, bulk_id: str, by: By) -> BulkView | None:
        """Stop a bulk command early."""

        def act(transaction: Transaction) -> BulkView | None:
            stopped = transaction.run(self._sql["stop"], {"id": bulk_id, "now": transaction.now})
            if stopped:
                view = _hold(stopped[0]).view
                self._audit.write(transaction, replace(by, bulk=bulk_id), ended(view))
                return view
            found = transaction.run(self._sql["bulk"], {"id": bulk_id})
            return _hold(found[0]).view if found else None

        return await self._database.write(act)

    async def bulk(self, bulk_id: str) -> BulkView | None:
        """One bulk command."""
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["bulk"], {"id": bulk_id}))
        return _hold(rows[0]).view if rows else None

    async def bulks(self, limit: int, before: str | None = None) -> list[BulkView]:
        """The newest bulk commands, or those before this one."""
        params = {"limit": limit, "before": before}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["bulks"], params))
        return [_hold(row).view for row in rows]


def _hold(row: Row) -> BulkHold:
    *columns, cursor, token = row
    named: dict[str, Any] = dict(zip(COLUMNS, columns, strict=True))
    named |= {name: from_micros(named[name]) for name in _TIMES} | {"finished_at": maybe_moment(named["finished_at"])}
    return BulkHold(bulk_view(named), token, cursor)
