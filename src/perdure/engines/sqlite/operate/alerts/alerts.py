"""The book of alerts: what an evaluation reads and writes, and the notices on their way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from perdure.domain.alerts.alert import Alert, Delivery, Notice
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Cause, Fate, Fire
from perdure.engines.shared.database.instants import END_OF_TIME, from_micros, span, to_micros
from perdure.engines.shared.operate.alert_records import (
    FORGOTTEN_PER_CALL,
    NOTICES_PER_CALL,
    alert_of,
    delivery,
    notice_text,
    notices_of,
    recent_failures,
    said_times,
    tested,
)
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.intake import IntakePart
from perdure.engines.sqlite.operate.alerts.alert_rows import AlertRows
from perdure.engines.sqlite.operate.alerts.alert_rules import AlertRulePart
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.storage.operate.alerts import ALERTS_KEPT, AlertBook, AlertFilter, AlertPage, RecentFailure

_KEPT: Final = span(ALERTS_KEPT)


class AlertPart:
    """Alerts, notices and deliveries of the store."""

    def __init__(self, database: Database, intake: IntakePart, rules: AlertRulePart) -> None:
        self._database = database
        self._sql = database.statements("alerts.sql")
        self._rows = AlertRows(database)
        self._rules = rules
        self._intake = intake
        self._audit = Audit(database)

    async def alert_book(self, said_since: timedelta) -> AlertBook:
        """The state that an evaluation starts from."""

        def look(transaction: Transaction) -> AlertBook:
            [(version, memory)] = transaction.run(self._sql["book"])
            said = transaction.run(self._sql["said"], {"since": transaction.now - span(said_since)})
            return AlertBook(
                version=version,
                memory=memory,
                now=from_micros(transaction.now),
                rules=tuple(self._rules.rules_within(transaction)),
                channels=tuple(self._rules.channels_within(transaction)),
                alerts=tuple(alert_of(text) for (text,) in transaction.run(self._sql["live"])),
                said_at=said_times((rule, from_micros(at)) for rule, at in said),
                deliveries=tuple(
                    _delivery(row) for row in transaction.run(self._sql["pending"], {"limit": NOTICES_PER_CALL})
                ),
            )

        return await self._database.read(look)

    async def write_alerts(self, page: AlertPage) -> bool:
        """Write what an evaluation has found."""

        def act(transaction: Transaction) -> bool:
            if not transaction.change(self._sql["turn"], {"version": page.version, "memory": page.memory}):
                return False
            for alert in page.alerts:
                self._rows.put(transaction, alert, is_live=alert.id not in page.done)
            for notice in page.notices:
                self._put_notice(transaction, notice)
            if page.jobs:
                self._intake.insert_within(transaction, list(page.jobs))
            for notice_id, channel, error in page.lost:
                row = {"notice_id": notice_id, "channel": channel, "error": clean(error), "now": transaction.now}
                transaction.change(self._sql["lose_delivery"], row)
            old = {"before": transaction.now - _KEPT, "limit": FORGOTTEN_PER_CALL}
            for statement in ("forget_alerts", "forget_deliveries", "forget_notices"):
                transaction.change(self._sql[statement], old)
            return True

        return await self._database.write(act)

    async def recent_failures(self, since: datetime, limit: int) -> list[RecentFailure]:
        """The groups that have failed since then."""
        hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        params = {"hour": to_micros(hour), "since": to_micros(since), "limit": limit}

        def look(transaction: Transaction) -> list[RecentFailure]:
            rows = transaction.run(self._sql["failures"], params)
            return recent_failures((*row[:4], *map(from_micros, row[4:7]), row[7]) for row in rows)

        return await self._database.read(look)

    async def missed_fires(self, since: datetime, limit: int) -> list[Fire]:
        """The nominal times that were missed since then."""
        params = {"since": to_micros(since), "limit": limit}
        return await self._database.read(lambda each: [_fire(row) for row in each.run(self._sql["missed"], params)])

    async def alerts(self, which: AlertFilter, limit: int) -> list[Alert]:
        """Alerts that match, the last to open first."""
        at, alert_id = _place(which.before)
        params = {"rule": which.rule, "open_only": which.open_only, "at": at, "id": alert_id, "limit": limit}
        return await self._database.read(
            lambda each: [alert_of(text) for (text,) in each.run(self._sql["alerts"], params)]
        )

    async def notices(self, limit: int, before: tuple[datetime, str] | None = None) -> list[Notice]:
        """The newest notices."""
        at, notice_id = _place(before)
        params = {"at": at, "id": notice_id, "limit": limit}
        return await self._database.read(lambda each: self._whole(each, each.run(self._sql["notices"], params)))

    async def notice(self, notice_id: str) -> Notice | None:
        """One notice."""

        def look(transaction: Transaction) -> Notice | None:
            found = self._whole(transaction, transaction.run(self._sql["notice"], {"id": notice_id}))
            return found[0] if found else None

        return await self._database.read(look)

    async def add_notice(self, notice: Notice, jobs: Sequence[NewJob], by: By) -> None:
        """Keep a notice that an operator sends."""

        def act(transaction: Transaction) -> None:
            self._put_notice(transaction, notice)
            self._intake.insert_within(transaction, list(jobs))
            self._audit.write(transaction, by, tested(notice))

        await self._database.write(act)

    async def note_delivery(self, notice_id: str, channel: str, error: str | None) -> None:
        """Keep how an attempt to deliver a notice went."""
        words = None if error is None else clean(error)

        def act(transaction: Transaction) -> None:
            row = {"notice_id": notice_id, "channel": channel, "error": words, "now": transaction.now}
            transaction.change(self._sql["note_delivery"], row)
            if error is None:
                transaction.change(self._sql["note_sent"], {"channel": channel, "now": transaction.now})
            else:
                row = {"channel": channel, "error": words, "now": transaction.now}
                transaction.change(self._sql["note_failed"], row)

        await self._database.write(act)

    def _put_notice(self, transaction: Transaction, notice: Notice) -> None:
        row = {"id": notice.id, "rule": notice.rule, "at": to_micros(notice.at), "notice": notice_text(notice)}
        transaction.change(self._sql["put_notice"], row)
        for one in notice.deliveries:
            row = {"notice_id": notice.id, "channel": one.channel, "job_id": one.job_id, "now": transaction.now}
            transaction.change(self._sql["put_delivery"], row)

    def _whole(self, transaction: Transaction, rows: Sequence[tuple[Any, ...]]) -> list[Notice]:
        bare = notices_of((text for (text,) in rows), ())
        ids = {"ids": to_document([notice.id for notice in bare])}
        return notices_of(
            (text for (text,) in rows), [_delivery(row) for row in transaction.run(self._sql["deliveries"], ids)]
        )


def _delivery(row: Sequence[Any]) -> tuple[str, Delivery]:
    notice_id, channel, job_id, state, changed_at, error = row
    return delivery((notice_id, channel, job_id, state, from_micros(changed_at), error))


def _place(before: tuple[datetime, str] | None) -> tuple[int, str]:
    return (END_OF_TIME, "") if before is None else (to_micros(before[0]), before[1])


def _fire(row: Sequence[Any]) -> Fire:
    schedule, nominal_at, fate, cause, at, job_id = row
    return Fire(
        schedule=schedule,
        nominal_at=from_micros(nominal_at),
        fate=Fate(fate),
        cause=Cause(cause),
        at=from_micros(at),
        job_id=JobId(job_id) if job_id else None,
    )
