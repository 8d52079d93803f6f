"""What can be wrong with a PostgreSQL server, as far as jobs are concerned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.duration import format_duration
from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.operate.commands.audit import by_columns
from perdure.engines.postgres.operate.pooler_diagnosis import PoolerDiagnosis
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.storage.operate.diagnosis import (
    Finding,
    ParkedAhead,
    PausedJobs,
    Waiting,
    fine,
    problem,
    warning,
)

LONG_SNAPSHOT: Final = timedelta(minutes=5)
MANY_DEAD_ROWS: Final = 50_000
_MANY_DEAD_PER_LIVE_ROW: Final = 5
_FEW_CONNECTIONS_LEFT: Final = 3
_LITTLE_ROOM_ONE_IN: Final = 10


class DiagnosisPart:
    """Examines the server through a session of ours."""

    def __init__(self, naming: Naming, pool: Pool, pooler: PoolerDiagnosis, clock: Clock | None = None) -> None:
        self._naming = naming
        self._clock = clock
        self._statements = naming.statements("operate/diagnosis.sql")
        self._pool = pool
        self._pooler = pooler

    async def diagnose(self) -> list[Finding]:
        """Look at the version, the durability settings, vacuum and what keeps it back, connections and poolers."""
        settings = {str(name): str(value) for name, value in await self._pool.rows(self._statements["settings"])}
        return [
            fine("version", f"PostgreSQL {settings['server_version']}"),  # one that is too old was not opened
            judge_durability(settings),
            await self._bloat(),
            await self._snapshots(),
            await self._connections(),
            await self._pooler.diagnose(),
        ]

    async def waiting(self) -> list[Waiting]:
        """For each queue with ready jobs, the longest wait."""
        return [Waiting(queue, since) for queue, since in await self._pool.rows(self._statements["waiting"])]

    async def paused(self, reasons: Collection[str], cap: int) -> list[PausedJobs]:
        """Jobs that are held for one of these reasons, by reason and kind."""
        rows = await self._pool.rows(self._statements["paused"], {"reasons": text_array(sorted(reasons)), "cap": cap})
        return [PausedJobs(*row) for row in rows]

    async def parked_ahead(self) -> ParkedAhead | None:
        """Jobs that wait too long, because a clock that was ahead parked them."""
        params = {"now": self._now(), "slack": CLOCK_SLACK}
        [[jobs, by]] = await self._pool.rows(self._statements["parked_ahead"], params)
        return ParkedAhead(jobs, by) if jobs else None

    async def redate_parked(self, by: By, limit: int) -> list[JobId]:
        """Give such jobs their intended wait from now on."""
        params = {"now": self._now(), "slack": CLOCK_SLACK, "limit": limit, **by_columns(by)}
        rows = await self._pool.rows(self._statements["redate_parked"], params)
        return [JobId(job_id) for (job_id,) in rows]

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

    async def _bloat(self) -> Finding:
        params = {"schema": self._naming.schema, "prefix": self._naming.prefix}
        return judge_bloat(
            {name: (live, dead) for name, live, dead in await self._pool.rows(self._statements["bloat"], params)}
        )

    async def _snapshots(self) -> Finding:
        [[prepared, oldest]] = await self._pool.rows(self._statements["prepared"])
        if prepared and timedelta(seconds=oldest) >= LONG_SNAPSHOT:
            seen = f"{prepared} prepared transactions, the oldest for {_rounded(oldest)}"
            advice = "they stop vacuum: COMMIT PREPARED or ROLLBACK PREPARED, see pg_prepared_xacts"
            return warning("snapshots", seen, advice)
        rows = await self._pool.rows(self._statements["oldest_snapshot"])
        return judge_snapshot(*rows[0]) if rows else fine("snapshots", "no transaction is open for long")

    async def _connections(self) -> Finding:
        [[used, reserved, most]] = await self._pool.rows(self._statements["connections"])
        return judge_connections(used, most - reserved)


def judge_durability(settings: Mapping[str, str]) -> Finding:
    """Whether a commit survives a power cut."""
    unsafe = [name for name in ("fsync", "full_page_writes") if settings[name] == "off"]
    if unsafe:
        seen = " and ".join(f"{name}=off" for name in unsafe)
        return problem(
            "durability", seen, f"a power cut may lose or corrupt everything: set {' and '.join(unsafe)} to on"
        )
    if settings["synchronous_commit"] == "off":
        return fine("durability", "fsync=on; synchronous_commit=off on the server, on in perdure's own sessions")
    return fine("durability", f"fsync=on, synchronous_commit={settings['synchronous_commit']}")


def judge_bloat(tables: Mapping[str, tuple[int, int]]) -> Finding:
    """Whether vacuum keeps up with the tables that every job passes through."""
    bad = {
        name: dead
        for name, (live, dead) in tables.items()
        if dead > MANY_DEAD_ROWS and dead > _MANY_DEAD_PER_LIVE_ROW * max(live, 1)
    }
    if not bad:
        return fine("dead rows", ", ".join(f"{name} {dead:,}" for name, (_, dead) in tables.items()) or "no tables yet")
    seen = ", ".join(f"{dead:,} in {name}" for name, dead in bad.items())
    advice = "vacuum does not keep up: end old transactions (see snapshots), give autovacuum more workers"
    return warning("dead rows", seen, advice)


def judge_snapshot(pid: int, application: str, state: str, seconds: float) -> Finding:
    """Whether an old transaction stops vacuum."""
    if timedelta(seconds=seconds) < LONG_SNAPSHOT:
        return fine("snapshots", f"the oldest transaction is open for {_rounded(seconds)}")
    seen = f"process {pid} ({application or 'unnamed'}, {state}) has a transaction open for {_rounded(seconds)}"
    advice = f"it stops vacuum and slows claiming: let it end, or SELECT pg_terminate_backend({pid})"
    return warning("snapshots", seen, advice)


def judge_connections(used: int, usable: int) -> Finding:
    """Whether another worker can still connect."""
    left = usable - used
    seen = f"{used} of {usable} in use"
    advice = "raise max_connections, use a pooler, or run fewer processes: a worker needs up to ten"
    if left <= _FEW_CONNECTIONS_LEFT:
        return problem("connections", seen, advice)
    return warning("connections", seen, advice) if left * _LITTLE_ROOM_ONE_IN < usable else fine("connections", seen)


def _rounded(seconds: float) -> str:
    return format_duration(timedelta(seconds=max(round(seconds), 0)))
