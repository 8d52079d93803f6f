"""Schedules as they are kept: declared by apps, or made, changed, paused and deleted at run time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from perdure.domain.schedule import Cause, DueSchedules, Fate, Fire, Origin, ScheduleView
from perdure.engines.shared.database.instants import END_OF_TIME, from_micros, maybe_micros, maybe_moment, to_micros
from perdure.engines.shared.definitions import definition_text, read_definition
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Row
from perdure.engines.sqlite.database.rows import to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.operate.audit import Audit
from perdure.errors import ConflictError
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

    async def save_schedule(self, timed: Timed, actor: str) -> ScheduleView:
        """Make a schedule, or change one that was made."""
        name = timed.schedule.name
        _check([timed])

        def save(transaction: Transaction) -> ScheduleView:
            self._put(transaction, {name: timed}, Origin.MADE)
            self._audit.about(transaction, actor, "schedule.save", schedule=name)
            return self._stored(transaction, [name])[name]

        return await self._database.write(save)

    async def pause_schedule(
        self, name: str, actor: str, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Move a schedule past its pause, so that whoever is about to fire it finds it moved on."""
        params = {"until": maybe_micros(until), "next_at": maybe_micros(next_at)}
        details = {} if until is None else {"until": until.isoformat()}
        return await self._command("pause", name, actor, params, details)

    async def resume_schedule(self, name: str, actor: str, next_at: datetime | None) -> ScheduleView | None:
        """Let a schedule go on; one that is not paused stays as it is."""
        return await self._command("resume", name, actor, {"next_at": maybe_micros(next_at)}, {})

    async def delete_schedule(self, name: str, actor: str) -> bool:
        """Forget a schedule and the record of its times."""

        def delete(transaction: Transaction) -> bool:
            if not transaction.change(self._sql["forget"], {"name": name}):
                return False
            transaction.change(self._sql["forget_fires"], {"name": name})
            self._audit.about(transaction, actor, "schedule.delete", schedule=name)
            return True

        return await self._database.write(delete)

    async def schedule(self, name: str) -> ScheduleView | None:
        """One schedule."""
        return (await self._database.read(lambda transaction: self._stored(transaction, [name]))).get(name)

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""
        sql = f"{self._sql['view']} {self._sql['in_order']}"
        return [_view(row) for row in await self._database.read(lambda transaction: transaction.run(sql))]

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """Schedules whose time has come, most overdue first; only looked at."""
        ours = frozenset(declared)

        def look(transaction: Transaction) -> DueSchedules:
            now = from_micros(transaction.now)
            due = self._earliest(transaction, "due", ours, limit)
            coming = self._earliest(transaction, "coming", ours, 1)
            next_in = coming[0].next_at - now if coming and coming[0].next_at else None
            return DueSchedules(tuple(due), now, next_in)

        return await self._database.read(look)

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """What became of the schedule's nominal times, the latest first."""
        params = {"name": name, "before": END_OF_TIME if before is None else to_micros(before), "limit": limit}
        return [_fire(row) for row in await self._database.read(lambda each: each.run(self._sql["fires"], params))]

    async def last_fires(self) -> list[Fire]:
        """What became of the latest nominal time of each schedule."""
        return [_fire(row) for row in await self._database.read(lambda each: each.run(self._sql["last_fires"]))]

    def _earliest(
        self, transaction: Transaction, which: str, declared: frozenset[str], limit: int
    ) -> list[ScheduleView]:
        """The earliest of those that are made or `declared`: most often all there are, so it is not asked at first."""
        view, chosen, ours, earliest = (self._sql[name] for name in ("view", which, "ours", "earliest"))
        params: dict[str, Any] = {"now": transaction.now, "limit": limit}
        found = [_view(row) for row in transaction.run(f"{view} {chosen} {earliest}", params)]
        if all(one.origin is Origin.MADE or one.name in declared for one in found):
            return found
        params["declared"] = to_document(list(declared))
        return [_view(row) for row in transaction.run(f"{view} {chosen} {ours} {earliest}", params)]

    async def _command(
        self, action: str, name: str, actor: str, params: dict[str, Any], details: dict[str, str]
    ) -> ScheduleView | None:
        def act(transaction: Transaction) -> ScheduleView | None:
            if transaction.change(self._sql[action], params | {"name": name, "now": transaction.now}):
                self._audit.about(transaction, actor, f"schedule.{action}", schedule=name, **details)
            return self._stored(transaction, [name]).get(name)

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
        return {view.name: view for view in map(_view, rows)}


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
            raise ConflictError(_REFUSALS[origin].format(name=schedule.name))
        elif stored.schedule != schedule:
            next_at = self._next_at(timed, stored)
            self.changed.append((schedule.name, definition_text(schedule), maybe_micros(next_at)))

    def _next_at(self, timed: Timed, stored: ScheduleView) -> datetime | None:
        """Where a changed schedule goes on: where it stood, unless its times are others now; a pause holds on."""
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


_REFUSALS: Final = {
    Origin.DECLARED: "schedule {name!r} was made at run time: delete that one, or declare this one under another name",
    Origin.MADE: "schedule {name!r} is declared in code: change it there, or choose another name",
}


def _check(schedules: Iterable[Timed]) -> None:
    """Refuse, by the name of its field, text of which no job can be made."""
    for timed in schedules:
        for field in ("name", "kind", "queue", "args"):
            check_text(field, getattr(timed.schedule, field))


def _view(row: Row) -> ScheduleView:
    definition, origin, version, next_at, last_at, last_job_id, paused_at, paused_until, *noted = row
    created_at, changed_at, declared_at = noted
    return ScheduleView(
        schedule=read_definition(definition),
        origin=Origin(origin),
        version=version,
        next_at=maybe_moment(next_at),
        last_at=maybe_moment(last_at),
        last_job_id=last_job_id,
        paused_at=maybe_moment(paused_at),
        paused_until=maybe_moment(paused_until),
        created_at=from_micros(created_at),
        changed_at=from_micros(changed_at),
        declared_at=maybe_moment(declared_at),
    )


def _fire(row: Row) -> Fire:
    schedule, nominal_at, fate, cause, at, job_id, queue = row
    return Fire(
        schedule=schedule,
        nominal_at=from_micros(nominal_at),
        fate=Fate(fate),
        cause=Cause(cause),
        at=from_micros(at),
        job_id=job_id,
        queue=queue,
    )
