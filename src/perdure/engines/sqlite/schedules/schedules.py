"""Stored schedules: declared by apps, or made, changed, paused and deleted at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.domain.operate.audit import By
from perdure.domain.schedule import Fire, Origin, ScheduleView
from perdure.engines.shared.database.instants import END_OF_TIME, from_micros, maybe_micros, to_micros
from perdure.engines.shared.definitions import definition_text
from perdure.engines.shared.operate.audit_details import schedule_changed
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import fire_of, schedule_of, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.policy.schedules.origins import origin_conflict
from perdure.storage.schedules import Timed


class SchedulePart:
    """Schedules of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("schedules/schedules.sql")
        self._audit = Audit(database)

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """Enter what an app declares: all of it, or nothing if one of the names was made at run time."""
        if not declared:
            return
        by_name = {timed.schedule.name: timed for timed in declared}
        _check(by_name.values())
        await self._database.write(lambda transaction: self._put(transaction, by_name, Origin.DECLARED))

    async def save_schedule(self, timed: Timed, by: By) -> ScheduleView:
        """Make a schedule, or change one that was made."""
        name = timed.schedule.name
        _check([timed])

        def save(transaction: Transaction) -> ScheduleView:
            before = self._stored(transaction, [name]).get(name)
            self._put(transaction, {name: timed}, Origin.MADE)
            after = self._stored(transaction, [name])[name]
            self._audit.write(transaction, by, schedule_changed("save", name, before, after))
            return after

        return await self._database.write(save)

    async def pause_schedule(
        self, name: str, by: By, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Move a schedule past its pause, so that a process about to fire it finds it moved on."""
        params = {"until": maybe_micros(until), "next_at": maybe_micros(next_at)}
        return await self._command("pause", name, by, params)

    async def resume_schedule(self, name: str, by: By, next_at: datetime | None) -> ScheduleView | None:
        """Resume a schedule; one that is not paused does not change."""
        return await self._command("resume", name, by, {"next_at": maybe_micros(next_at)})

    async def delete_schedule(self, name: str, by: By) -> bool:
        """Delete a schedule and the record of its times."""

        def delete(transaction: Transaction) -> bool:
            before = self._stored(transaction, [name]).get(name)
            if not transaction.change(self._sql["forget"], {"name": name}):
                return False
            transaction.change(self._sql["forget_fires"], {"name": name})
            self._audit.write(transaction, by, schedule_changed("delete", name, before, None))
            return True

        return await self._database.write(delete)

    async def schedule(self, name: str) -> ScheduleView | None:
        """One schedule."""
        return (await self._database.read(lambda transaction: self._stored(transaction, [name]))).get(name)

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""
        sql = f"{self._sql['view']} {self._sql['in_order']}"
        return [schedule_of(row) for row in await self._database.read(lambda transaction: transaction.run(sql))]

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """The outcomes of the schedule's nominal times, the latest first."""
        params = {"name": name, "before": END_OF_TIME if before is None else to_micros(before), "limit": limit}
        return [fire_of(row) for row in await self._database.read(lambda each: each.run(self._sql["fires"], params))]

    async def last_fires(self) -> list[Fire]:
        """The outcome of the latest nominal time of each schedule."""
        return [fire_of(row) for row in await self._database.read(lambda each: each.run(self._sql["last_fires"]))]

    async def _command(self, action: str, name: str, by: By, params: dict[str, Any]) -> ScheduleView | None:
        def act(transaction: Transaction) -> ScheduleView | None:
            before = self._stored(transaction, [name]).get(name)
            changed = transaction.change(self._sql[action], params | {"name": name, "now": transaction.now})
            after = self._stored(transaction, [name]).get(name)
            if changed:
                self._audit.write(transaction, by, schedule_changed(action, name, before, after))
            return after

        return await self._database.write(act)

    def _put(self, transaction: Transaction, wanted: dict[str, Timed], origin: Origin) -> None:
        """Enter these schedules, or change those whose definition differs; refuse names of the other origin."""
        stored = self._stored(transaction, wanted)
        changes = Changes(transaction.now)
        for name, timed in wanted.items():
            changes.add(timed, stored.get(name), origin)
        for statement, rows in (("enter", changes.new), ("change", changes.changed)):
            if rows:
                params = {"rows": to_document(rows), "now": transaction.now}
                transaction.change(self._sql[statement], params | ({"origin": origin} if rows is changes.new else {}))
        if origin is Origin.DECLARED:
            names = to_document(list(wanted))
            transaction.change(self._sql["note_declared"], {"names": names, "now": transaction.now})

    def _stored(self, transaction: Transaction, names: Iterable[str]) -> dict[str, ScheduleView]:
        sql = f"{self._sql['view']} {self._sql['named']}"
        rows = transaction.run(sql, {"names": to_document(list(names))})
        return {view.name: view for view in map(schedule_of, rows)}


class Changes:
    """The rows to be written for schedules that are new, and for those that have changed."""

    def __init__(self, now: int) -> None:
        self._now = from_micros(now)
        self.new: list[tuple[str, str, int | None]] = []
        self.changed: list[tuple[str, str, int | None]] = []

    def add(self, timed: Timed, stored: ScheduleView | None, origin: Origin) -> None:
        """Note what is to be done about one schedule; raises if that name is not ours."""
        schedule = timed.schedule
        if stored is None:
            self.new.append((schedule.name, definition_text(schedule), maybe_micros(timed.next_at)))
        elif stored.origin is not origin:
            raise origin_conflict([schedule.name], origin)
        elif stored.schedule != schedule:
            next_at = self._next_at(timed, stored)
            self.changed.append((schedule.name, definition_text(schedule), maybe_micros(next_at)))

    def _next_at(self, timed: Timed, stored: ScheduleView) -> datetime | None:
        """The next time of a changed schedule: as before, unless its times have changed; a pause stays."""
        before, after = stored.schedule, timed.schedule
        if (before.expression, before.tz) == (after.expression, after.tz):
            return stored.next_at
        if stored.paused_at is None:
            return timed.next_at
        until = stored.paused_until
        if until is None:
            return None
        is_past_pause = until <= self._now or timed.next_at is None or timed.next_at > until
        return timed.next_at if is_past_pause else stored.next_at


def _check(schedules: Iterable[Timed]) -> None:
    """Refuse, by the name of its field, text that no job can have."""
    for timed in schedules:
        for field in ("name", "kind", "queue", "args"):
            check_text(field, getattr(timed.schedule, field))
