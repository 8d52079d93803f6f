"""The book of alerts: what an evaluation reads and writes, and the notices on their way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.alerts.alert import Alert, Notice
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Cause, Fate, Fire
from perdure.engines.postgres.database.arrays import storable, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.postgres.operate.alerts.alert_rows import AlertRows
from perdure.engines.postgres.operate.alerts.alert_rules import AlertRulePart
from perdure.engines.postgres.operate.commands.audit import Audit
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
from perdure.storage.operate.alerts import ALERTS_KEPT, AlertBook, AlertFilter, AlertPage, RecentFailure

_LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC)


class AlertPart:
    """Alerts, notices and deliveries of the store."""

    def __init__(
        self, naming: Naming, pool: Pool, clock: Clock | None, intake: IntakePart, rules: AlertRulePart
    ) -> None:
        self._sql = naming.statements("alerts.sql")
        self._pool = pool
        self._clock = clock
        self._intake = intake
        self._rules = rules
        self._rows = AlertRows(naming)
        self._audit = Audit(naming, clock)

    async def alert_book(self, said_since: timedelta) -> AlertBook:
        """The state that an evaluation starts from.

        The version is read first: a change during the later reads makes the page stale.
        """
        [(version, memory, now)] = await self._pool.rows(self._sql["book"], {"now": self._now()})
        said = await self._pool.rows(self._sql["said"], {"since": said_since.total_seconds(), "now": self._now()})
        pending = await self._pool.rows(self._sql["pending"], {"limit": NOTICES_PER_CALL})
        return AlertBook(
            version=version,
            memory=memory,
            now=now,
            rules=tuple(await self._rules.alert_rules()),
            channels=tuple(await self._rules.alert_channels()),
            alerts=tuple(alert_of(text) for (text,) in await self._pool.rows(self._sql["live"], {})),
            said_at=said_times((rule, at) for rule, at in said),
            deliveries=tuple(delivery(row) for row in pending),
        )

    async def write_alerts(self, page: AlertPage) -> bool:
        """Write what an evaluation has found."""

        async def work(wire: Wire) -> bool:
            turned = await wire.fetch(self._sql["turn"], {"version": page.version, "memory": page.memory})
            if not turned:
                return False
            for alert in page.alerts:
                await self._rows.put(wire, alert, is_live=alert.id not in page.done)
            for notice in page.notices:
                await self._put_notice(wire, notice)
            if page.jobs:
                await self._intake.insert_within(wire, list(page.jobs))
            for notice_id, channel, error in page.lost:
                params: Params = {"notice_id": notice_id, "channel": channel, "error": storable(error)}
                await wire.fetch(self._sql["lose_delivery"], {**params, "now": self._now()})
            old: Params = {"kept": ALERTS_KEPT.total_seconds(), "limit": FORGOTTEN_PER_CALL, "now": self._now()}
            for statement in ("forget_alerts", "forget_deliveries", "forget_notices"):
                await wire.fetch(self._sql[statement], old)
            return True

        return await self._pool.transaction(work)

    async def recent_failures(self, since: datetime, limit: int) -> list[RecentFailure]:
        """The groups that have failed since then."""
        hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        params: Params = {"hour": hour, "since": since, "limit": limit}
        return recent_failures(await self._pool.rows(self._sql["failures"], params))

    async def missed_fires(self, since: datetime, limit: int) -> list[Fire]:
        """The nominal times that were missed since then."""
        return [_fire(row) for row in await self._pool.rows(self._sql["missed"], {"since": since, "limit": limit})]

    async def alerts(self, which: AlertFilter, limit: int) -> list[Alert]:
        """Alerts that match, the last to open first."""
        at, alert_id = which.before or (_LATEST, "")
        params: Params = {"rule": which.rule, "open_only": which.open_only, "at": at, "id": alert_id, "limit": limit}
        return [alert_of(text) for (text,) in await self._pool.rows(self._sql["alerts"], params)]

    async def notices(self, limit: int, before: tuple[datetime, str] | None = None) -> list[Notice]:
        """The newest notices."""
        at, notice_id = before or (_LATEST, "")
        return await self._whole("notices", {"at": at, "id": notice_id, "limit": limit})

    async def notice(self, notice_id: str) -> Notice | None:
        """One notice."""
        found = await self._whole("notice", {"id": notice_id})
        return found[0] if found else None

    async def add_notice(self, notice: Notice, jobs: Sequence[NewJob], by: By) -> None:
        """Keep a notice that an operator sends."""

        async def work(wire: Wire) -> None:
            await self._put_notice(wire, notice)
            await self._intake.insert_within(wire, list(jobs))
            await self._audit.write(wire, by, tested(notice))

        await self._pool.transaction(work)

    async def note_delivery(self, notice_id: str, channel: str, error: str | None) -> None:
        """Keep how an attempt to deliver a notice went."""
        words = None if error is None else storable(error)
        params: Params = {"notice_id": notice_id, "channel": channel, "error": words, "now": self._now()}

        async def work(wire: Wire) -> None:
            await wire.fetch(self._sql["note_delivery"], params)
            await wire.fetch(self._sql["note_sent" if error is None else "note_failed"], params)

        await self._pool.transaction(work)

    async def _put_notice(self, wire: Wire, notice: Notice) -> None:
        params: Params = {"id": notice.id, "rule": notice.rule, "at": notice.at, "notice": notice_text(notice)}
        await wire.fetch(self._sql["put_notice"], params)
        for one in notice.deliveries:
            row: Params = {"notice_id": notice.id, "channel": one.channel, "job_id": one.job_id, "now": self._now()}
            await wire.fetch(self._sql["put_delivery"], row)

    async def _whole(self, statement: str, params: Params) -> list[Notice]:
        texts = [text for (text,) in await self._pool.rows(self._sql[statement], params)]
        ids = text_array([notice.id for notice in notices_of(texts, ())])
        rows = await self._pool.rows(self._sql["deliveries"], {"ids": ids})
        return notices_of(texts, [delivery(row) for row in rows])

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _fire(row: Row) -> Fire:
    schedule, nominal_at, fate, cause, at, job_id = row
    return Fire(
        schedule=schedule,
        nominal_at=nominal_at,
        fate=Fate(fate),
        cause=Cause(cause),
        at=at,
        job_id=JobId(job_id) if job_id else None,
    )
