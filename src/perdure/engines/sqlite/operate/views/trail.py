"""The audit trail as it is read, newest first along an index, and added to by applications."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import SYSTEM, AuditEntry, By, Note
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.shared.operate.trail_conditions import conditions_of
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Row
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.storage.operate.audit import AuditFilter

_EVER: Final = 2**63 - 1


class TrailPart:
    """The audit trail of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/commands/audit.sql")
        self._audit = Audit(database)

    async def audit(self, which: AuditFilter, limit: int, before: int | None = None) -> list[AuditEntry]:
        """The entries that match, newest first."""

        def look(transaction: Transaction) -> list[AuditEntry]:
            until = (_EVER if which.until is None else to_micros(which.until), 0)
            if before is not None:
                known = transaction.run(self._sql["at"], {"id": before})
                if not known:  # the oldest are forgotten first: nothing is older than this one
                    return []
                until = min(until, (known[0][0], before))
            params = {
                "since": 0 if which.since is None else to_micros(which.since),
                "until_at": until[0],
                "until_id": until[1],
                "limit": limit,
            }
            sql, more = trail_query(self._sql, which)
            return [_entry(row) for row in transaction.run(sql, params | more)]

        return await self._database.read(look)

    async def record(self, by: By, note: Note) -> AuditEntry:
        """Add an entry."""
        return await self._database.write(lambda transaction: _entry(self._audit.write(transaction, by, note)))


def trail_query(sql: dict[str, str], which: AuditFilter) -> tuple[str, dict[str, Any]]:
    """The statement that reads entries along the index that fits best, and the values to bind besides the time."""
    given, index = conditions_of(which)
    by_actor = which.actor is not None and which.actor != SYSTEM
    source = sql[f"entries_by_{index}"]
    conditions = [sql["in_time"], *(sql[f"of_{name}"] for name in given), *([sql["of_others"]] if by_actor else [])]
    return f"{source} WHERE {' AND '.join(conditions)} {sql['newest_first']}", given


def _entry(row: Row) -> AuditEntry:
    number, at, actor, action, job_id, details, why, source, jobs, bulk = row
    return AuditEntry(
        id=number,
        at=from_micros(at),
        actor=actor,
        action=action,
        job_id=JobId(job_id) if job_id else None,
        details=msgspec.json.decode(details, type=dict[str, Any]),
        why=why,
        source=source,
        jobs=(1 if job_id else 0) if jobs is None else jobs,  # an older release does not say on how many
        bulk=bulk,
    )
