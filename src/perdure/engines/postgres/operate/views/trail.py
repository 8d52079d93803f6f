"""The audit trail as it is read, newest first along an index, and added to by applications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from perdure.clock import Clock
from perdure.domain.operate.audit import AuditEntry, By, Note
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.trail_conditions import conditions_of
from perdure.storage.operate.audit import AuditFilter

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_EVER: Final = datetime.max.replace(tzinfo=UTC)


class TrailPart:
    """The audit trail of the store."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._sql = naming.statements("operate/commands/audit.sql")
        self._pool = pool
        self._audit = Audit(naming, clock)

    async def audit(self, which: AuditFilter, limit: int, before: int | None = None) -> list[AuditEntry]:
        """The entries that match, newest first."""
        until = (which.until or _EVER, 0)
        if before is not None:
            known = await self._pool.rows(self._sql["at"], {"id": before})
            if not known:  # the oldest are forgotten first: nothing is older than this one
                return []
            until = min(until, (known[0][0], before))
        params: dict[str, object] = {
            "since": which.since or _NEVER,
            "until_at": until[0],
            "until_id": until[1],
            "limit": limit,
        }
        sql, more = trail_query(self._sql, which)
        return [_entry(row) for row in await self._pool.rows(sql, params | more)]

    async def record(self, by: By, note: Note) -> AuditEntry:
        """Add an entry."""
        [row] = await self._pool.rows(*self._audit.statement(by, note))
        return _entry(row)


def trail_query(sql: Mapping[str, str], which: AuditFilter) -> tuple[str, dict[str, object]]:
    """The statement that reads entries along the index that fits best, and its parameters besides the time."""
    given, by = conditions_of(which)
    rest = "".join(f" AND {sql[f'of_{name}']}" for name in given if name != by)
    return f"{sql[f'entries_by_{by}']}{rest} {sql[f'newest_by_{by}']}", given


def _entry(row: Row) -> AuditEntry:
    number, at, actor, action, job_id, details, why, source, jobs, bulk = row
    return AuditEntry(
        id=number,
        at=at,
        actor=actor,
        action=action,
        job_id=job_id,
        details=msgspec.json.decode(details, type=dict[str, Any]),
        why=why,
        source=source,
        jobs=(1 if job_id else 0) if jobs is None else jobs,  # an older release does not say on how many
        bulk=bulk,
    )
