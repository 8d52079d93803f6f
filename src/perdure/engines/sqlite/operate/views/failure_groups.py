"""Groups of failures by their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.engines.shared.batch_sizes import GROUPS_COUNTED_SINGLY
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.shared.operate.failure_groups import Found, names_groups_only, page_of
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.views.filters import Selector
from perdure.policy.fingerprints import fingerprint
from perdure.storage.operate.failure_groups import JOBS_COUNTED_PER_GROUP, GroupRecord, HourOfFailures
from perdure.storage.records import JobFilter

_AFTER_ALL: Final = 2**62
_DEAD: Final = frozenset({JobState.DEAD})


class FailureGroupPart:
    """Groups of failures of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/views/failure_groups.sql")
        self._selector = Selector(database)

    async def failure_groups(
        self, which: JobFilter, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[GroupRecord]:
        """The groups of the dead letters that match, the last to fail first."""

        def look(transaction: Transaction) -> list[GroupRecord]:
            if which.fingerprint is not None and names_groups_only(which):
                groups = self._named(transaction, [which.fingerprint])
                wanted = [group for group in groups if which.kind in (None, group.kind)]
                return page_of([self._counted(transaction, group) for group in wanted], limit, before)
            if not names_groups_only(which) or self._are_many(transaction):
                return page_of(self._among_newest(transaction, which), limit, before)
            at, last = (_AFTER_ALL, "") if before is None else (to_micros(before[0]), before[1])
            params = {"most": GROUPS_COUNTED_SINGLY, "kind": which.kind, "at": at, "fingerprint": last, "limit": limit}
            rows = transaction.run(self._sql["groups"], params)
            return [self._counted(transaction, _group(row)) for row in rows]

        return await self._database.read(look)

    async def failure_hours(self, fingerprints: Sequence[str], since: datetime) -> list[HourOfFailures]:
        """How often these groups have failed in each hour."""
        params = {"fingerprints": to_document(fingerprints), "since": to_micros(since)}

        def look(transaction: Transaction) -> list[HourOfFailures]:
            rows = transaction.run(self._sql["hours"], params)
            return [HourOfFailures(name, from_micros(hour), *counts) for name, hour, *counts in rows]

        return await self._database.read(look)

    async def fingerprint_dead(self, limit: int) -> int:
        """Add missing fingerprints to dead letters."""

        def look(transaction: Transaction) -> bool:
            return bool(transaction.run(self._sql["unprinted"], {"limit": 1}))

        def write(transaction: Transaction) -> int:
            rows = [_printed(*row) for row in transaction.run(self._sql["unprinted"], {"limit": limit})]
            for statement in ("add_groups", "print_attempts", "print_dead"):
                transaction.change(self._sql[statement], {"rows": to_document(rows)})
            return len(rows)

        return await self._database.write(write) if await self._database.read(look) else 0

    def _named(self, transaction: Transaction, fingerprints: Sequence[str]) -> list[GroupRecord]:
        params = {"fingerprints": to_document(fingerprints)}
        return [_group(row) for row in transaction.run(self._sql["some_groups"], params)]

    def _are_many(self, transaction: Transaction) -> bool:
        return bool(transaction.run(self._sql["are_many"], {"most": GROUPS_COUNTED_SINGLY})[0][0])

    def _counted(self, transaction: Transaction, group: GroupRecord) -> GroupRecord:
        params = {"fingerprint": group.fingerprint, "cap": JOBS_COUNTED_PER_GROUP}
        ((jobs, newest),) = transaction.run(self._sql["count_dead"], params)
        return replace(
            group, jobs=min(jobs, JOBS_COUNTED_PER_GROUP), capped=jobs > JOBS_COUNTED_PER_GROUP, newest=newest
        )

    def _among_newest(self, transaction: Transaction, which: JobFilter) -> list[GroupRecord]:
        """The groups of the newest dead letters that match."""
        found = Found()
        for selection in self._selector.select(replace(which, states=_DEAD)):
            sql = f"SELECT place.fingerprint, place.job_id {selection.newest_first}"
            found.add(transaction.run(sql, selection.params | {"limit": JOBS_COUNTED_PER_GROUP + 1}))
        return found.counted(self._named(transaction, found.fingerprints))


def _group(row: Sequence[Any]) -> GroupRecord:
    name, kind, error_type, message, first_at, last_at = row
    return GroupRecord(
        fingerprint=name,
        kind=kind,
        error_type=error_type,
        message=message,
        first_at=from_micros(first_at),
        last_at=from_micros(last_at),
        jobs=0,
    )


def _printed(job_id: JobId, kind: str, token: int | None, error_type: str, message: str, at: int) -> tuple[Any, ...]:
    found = fingerprint(kind, clean(error_type), clean(message))
    return job_id, token, found.hash, kind, error_type, found.message, at
