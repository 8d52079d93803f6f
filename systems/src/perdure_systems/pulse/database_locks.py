"""Who waits for a lock of the database."""

from __future__ import annotations

import time

import msgspec

from perdure_systems.kit.database import Database

_WAITING = """
SELECT pid, wait_event, array_to_string(pg_blocking_pids(pid), ',') AS blocked_by, left(query, 200) AS query
FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A connection that waits for others."""

    pid: int
    wait_event: str
    blocked_by: str
    query: str


class DatabaseLocks(msgspec.Struct, frozen=True, kw_only=True):
    """How long a writer has to wait at this moment, and who waits (PostgreSQL)."""

    engine: str
    write_lock_seconds: float
    waiting: tuple[Waiting, ...] = ()


async def database_locks(database: Database, url: str) -> DatabaseLocks:
    """Look who waits. On SQLite the one write lock is taken and let go again."""
    is_sqlite = url.startswith("sqlite:")
    began = time.monotonic()
    async with database.transaction() as session:
        seconds = time.monotonic() - began
        waiting = [] if is_sqlite else await session.all(Waiting, _WAITING)
    engine = "sqlite" if is_sqlite else "postgresql"
    return DatabaseLocks(engine=engine, write_lock_seconds=round(seconds, 6), waiting=tuple(waiting))
