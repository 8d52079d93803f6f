"""Groups of failures by their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from perdure.domain.jobs.states import JobState
from perdure.engines.postgres.database.arrays import number_array, storable, storable_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.operate.views.filters import select
from perdure.engines.postgres.operate.views.insight import jobs_query
from perdure.engines.shared.batch_sizes import GROUPS_COUNTED_SINGLY
from perdure.engines.shared.operate.failure_groups import Found, names_groups_only, page_of
from perdure.policy.fingerprints import fingerprint
from perdure.storage.operate.failure_groups import JOBS_COUNTED_PER_GROUP, GroupRecord, HourOfFailures
from perdure.storage.records import JobFilter

_DEAD: Final = frozenset({JobState.DEAD})


class FailureGroupPart:
    """Groups of failures of the store."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._statements = naming.statements("operate/views/failure_groups.sql")
        self._views = naming.statements("operate/views/insight.sql")
        self._pool = pool

    async def failure_groups(
        self, which: JobFilter, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[GroupRecord]:
        """The groups of the dead letters that match, the last to fail first."""
        names: list[str] | None = None
        if names_groups_only(which):
            names = [which.fingerprint] if which.fingerprint is not None else await self._names()
        if names is None:
            return page_of(await self._among_newest(which), limit, before)
        return await self._counted(page_of(await self._named(names, which.kind), limit, before))

    async def failure_hours(self, fingerprints: Sequence[str], since: datetime) -> list[HourOfFailures]:
        """How often these groups have failed in each hour."""
        params = {"fingerprints": text_array(fingerprints), "since": since}
        return [HourOfFailures(*row) for row in await self._pool.rows(self._statements["hours"], params)]

    async def fingerprint_dead(self, limit: int) -> int:
        """Add missing fingerprints to dead letters."""

        async def work(wire: Wire) -> int:
            rows = await wire.fetch(self._statements["unprinted"], {"limit": limit})
            if rows:
                await wire.fetch(self._statements["print_dead"], _printed(rows))
            return len(rows)

        return await self._pool.transaction(work)

    async def _names(self) -> list[str] | None:
        """The groups that have dead letters; None: there are too many to look at each."""
        rows = await self._pool.rows(self._statements["each_group"], {"most": GROUPS_COUNTED_SINGLY})
        return None if len(rows) > GROUPS_COUNTED_SINGLY else [name for (name,) in rows]

    async def _named(self, names: Sequence[str], kind: str | None = None) -> list[GroupRecord]:
        params = {"fingerprints": text_array(names), "kind": kind}
        return [_group(row) for row in await self._pool.rows(self._statements["groups"], params)]

    async def _counted(self, groups: Sequence[GroupRecord]) -> list[GroupRecord]:
        params = {"fingerprints": text_array([group.fingerprint for group in groups]), "cap": JOBS_COUNTED_PER_GROUP}
        rows = await self._pool.rows(self._statements["count_dead"], params)
        counts = {name: (jobs, newest) for name, jobs, newest in rows}
        counted = []
        for group in groups:
            jobs, newest = counts[group.fingerprint]
            capped = jobs > JOBS_COUNTED_PER_GROUP
            counted.append(replace(group, jobs=min(jobs, JOBS_COUNTED_PER_GROUP), capped=capped, newest=newest))
        return counted

    async def _among_newest(self, which: JobFilter) -> list[GroupRecord]:
        """The groups of the newest dead letters that match."""
        selection = select(replace(which, states=_DEAD))
        if not selection.conditions or which.ids == ():
            return []
        found = Found()
        sql = f"SELECT fingerprint, id {jobs_query(self._views, selection, 'DESC')}"
        found.add(await self._pool.rows(sql, {**selection.params, "limit": JOBS_COUNTED_PER_GROUP + 1}))
        return found.counted(await self._named(found.fingerprints))


def _group(row: Row) -> GroupRecord:
    name, kind, error_type, message, first_at, last_at = row
    return GroupRecord(
        fingerprint=name,
        kind=kind,
        error_type=error_type,
        message=message,
        first_at=first_at,
        last_at=last_at,
        jobs=0,
    )


def _printed(rows: Sequence[Row]) -> Params:
    found = [fingerprint(kind, storable(error), storable(message)) for _, kind, _, error, message, _ in rows]
    return {
        "ids": text_array([row[0] for row in rows]),
        "tokens": number_array([row[2] for row in rows]),
        "fingerprints": text_array([each.hash for each in found]),
        "kinds": text_array([row[1] for row in rows]),
        "types": storable_array([row[3] for row in rows]),
        "messages": storable_array([each.message for each in found]),
        "times": text_array([row[5].isoformat() for row in rows]),
    }
