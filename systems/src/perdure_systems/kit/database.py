"""A system's own tables, in the database of its jobs.

The same SQL runs on both engines. Parameters are written `:name`. Instants are `timestamptz` columns: PostgreSQL keeps
them as such, SQLite as ISO 8601 text in UTC, which sorts by time. JSON is kept in `text` columns. Rows come back as
records: frozen structs whose fields are the columns.

On SQLite, `BEGIN IMMEDIATE` and `COMMIT` run in threads, because they may wait for another writer or for the disk. The
statements in between only touch the page cache and run where they are called. The threads that commit are others than
those that wait to begin: with one pool for both, many waiting writers would leave none for the one that holds the lock.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import apsw
import msgspec
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from perdure import App, SettingsError
from perdure_systems.kit.rows import as_record

R = TypeVar("R", bound=msgspec.Struct)
Row = dict[str, Any]
Parameters = Mapping[str, Any]

_PERDURE_OPTIONS: Final = {"schema", "prefix", "driver", "prepare", "pooler"}
_BUSY_TIMEOUT_MS: Final = 30_000
_POOL_LIMIT_CONNECTIONS: Final = 8
_POOL_TIMEOUT_SECONDS: Final = 10.0  # a person waits for the answer that the database is away
# Writers of a file at once, and readers: others wait, so that open files do not run out.
_OPEN_SESSIONS_LIMIT: Final = 64
_PARAMETER: Final = re.compile(r"('(?:[^']|'')*')|(?<![:\w]):([a-z_]\w*)")
_NO_PARAMETERS: Final[Parameters] = {}
_BEGINNING: Final = ThreadPoolExecutor(8, "systems-begin")
_COMMITTING: Final = ThreadPoolExecutor(2, "systems-commit")


class Session:
    """Statements on one open connection: a transaction of the database, or what `ctx.transaction()` gives.

    `connection` is the driver's own, for `job.using(connection=session.connection)`.
    """

    def __init__(self, connection: apsw.Connection | AsyncConnection[Any]) -> None:
        self.connection = connection

    async def rows(self, sql: str, parameters: Parameters = _NO_PARAMETERS) -> list[Row]:
        """All rows of a statement, as dictionaries; a statement without rows gives none."""
        if isinstance(self.connection, apsw.Connection):
            return _sqlite_rows(self.connection, sql, parameters)
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_for_psycopg(sql), parameters)
            return await cursor.fetchall() if cursor.description else []

    async def execute(self, sql: str, parameters: Parameters = _NO_PARAMETERS) -> None:
        """Run a statement whose rows are not needed."""
        await self.rows(sql, parameters)

    async def all(self, record: type[R], sql: str, parameters: Parameters = _NO_PARAMETERS) -> list[R]:
        """All rows as records of this type."""
        return [as_record(row, record) for row in await self.rows(sql, parameters)]

    async def one(self, record: type[R], sql: str, parameters: Parameters = _NO_PARAMETERS) -> R | None:
        """The first row as a record of this type; None if there is none."""
        rows = await self.rows(sql, parameters)
        return as_record(rows[0], record) if rows else None


class Database:
    """Tables beside the jobs of an app: `async with database.transaction() as tx: await tx.execute(...)`.

    `migrations` is a folder of numbered `.sql` files, each applied once and in order before the first use. The database
    follows the app's URL, so that a sandbox of the app has the tables too.
    """

    def __init__(self, app: App, name: str, migrations: Path) -> None:
        self._app = app
        self._name = name
        self._migrations = migrations
        self._migrated: set[str] = set()
        self._migrating = asyncio.Lock()
        self._pools: dict[str, AsyncConnectionPool[AsyncConnection[Any]]] = {}
        self._idle: dict[str, list[apsw.Connection]] = {}
        self._places, self._reading = asyncio.Semaphore(_OPEN_SESSIONS_LIMIT), asyncio.Semaphore(_OPEN_SESSIONS_LIMIT)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Commit at the end of the block; roll back if it raises.

        On SQLite the block holds the file's one write lock. Await nothing else of perdure inside, such as the time or
        an enqueue without `connection=`: it would wait for the lock that the block holds.
        """
        await self.migrate()
        async with self._begun() as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Read only: on SQLite it waits for no writer and holds none up."""
        await self.migrate()
        async with self._begun(writes=False) as session:
            yield session

    async def all(self, record: type[R], sql: str, parameters: Parameters = _NO_PARAMETERS) -> list[R]:
        """All rows of a query as records."""
        async with self.snapshot() as session:
            return await session.all(record, sql, parameters)

    async def one(self, record: type[R], sql: str, parameters: Parameters = _NO_PARAMETERS) -> R | None:
        """The first row of a query as a record, or None."""
        async with self.snapshot() as session:
            return await session.one(record, sql, parameters)

    async def execute(self, sql: str, parameters: Parameters = _NO_PARAMETERS) -> None:
        """Run one statement in a transaction of its own."""
        async with self.transaction() as session:
            await session.execute(sql, parameters)

    async def migrate(self) -> list[str]:
        """Apply what is missing of the migrations; the names of those applied. Running it twice changes nothing."""
        url = self._app.url
        if url in self._migrated:
            return []
        async with self._migrating:
            if url in self._migrated:
                return []
            applied = await self._apply()
            self._migrated.add(url)
            return applied

    async def close(self) -> None:
        """Close every connection, those in use when they come back; the database can be used again afterwards."""
        pools, self._pools = self._pools, {}
        idle, self._idle = self._idle, {}
        self._migrated.clear()
        self._migrating = asyncio.Lock()  # the next use may be on another event loop
        self._places, self._reading = asyncio.Semaphore(_OPEN_SESSIONS_LIMIT), asyncio.Semaphore(_OPEN_SESSIONS_LIMIT)
        for pool in pools.values():
            await pool.close()
        for connections in idle.values():
            for connection in connections:
                connection.close()

    async def _apply(self) -> list[str]:
        async with self._begun() as session:
            if not isinstance(session.connection, apsw.Connection):  # SQLite's one writer needs no further lock
                await session.execute("SELECT pg_advisory_xact_lock(hashtext('perdure_systems'))")
            await session.execute(
                "CREATE TABLE IF NOT EXISTS systems_migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL)"
            )
            done = {row["name"] for row in await session.rows("SELECT name FROM systems_migration")}
            applied: list[str] = []
            for file in sorted(self._migrations.glob("*.sql")):
                name = f"{self._name}/{file.stem}"
                if name not in done:
                    for statement in _statements(file.read_text(encoding="utf-8")):
                        await session.execute(statement)
                    insert = "INSERT INTO systems_migration VALUES (:name, CURRENT_TIMESTAMP)"
                    await session.execute(insert, {"name": name})
                    applied.append(name)
            return applied

    @asynccontextmanager
    async def _begun(self, *, writes: bool = True) -> AsyncIterator[Session]:
        url = self._app.url
        if url.startswith("sqlite:"):
            async with self._places if writes else self._reading, self._begun_on_sqlite(url, writes=writes) as session:
                yield session
        else:
            pool = await self._pool(url)
            async with pool.connection() as connection:
                yield Session(connection)

    @asynccontextmanager
    async def _begun_on_sqlite(self, url: str, *, writes: bool) -> AsyncIterator[Session]:
        idle = self._idle.setdefault(url, [])
        connection = idle.pop() if idle else _open_sqlite(url)
        try:
            if writes:
                await _to_the_end(_BEGINNING, connection, "BEGIN IMMEDIATE")
                yield Session(connection)
                await _to_the_end(_COMMITTING, connection, "COMMIT")
            else:
                connection.execute("BEGIN")  # takes no lock: a reader must not queue for a thread behind writers
                yield Session(connection)
        finally:
            if connection.in_transaction:
                with suppress(apsw.Error):
                    connection.execute("ROLLBACK")
            if self._idle.get(url) is idle and len(idle) < _POOL_LIMIT_CONNECTIONS:
                idle.append(connection)
            else:
                connection.close()

    async def _pool(self, url: str) -> AsyncConnectionPool[AsyncConnection[Any]]:
        if url not in self._pools:
            pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
                _without_perdure_options(url),
                min_size=0,
                max_size=_POOL_LIMIT_CONNECTIONS,
                timeout=_POOL_TIMEOUT_SECONDS,
                open=False,
                check=AsyncConnectionPool.check_connection,
            )
            self._pools[url] = pool
            await pool.open()
        return self._pools[url]


async def _to_the_end(threads: ThreadPoolExecutor, connection: apsw.Connection, sql: str) -> None:
    """Run a statement in a thread. A cancelled caller waits for its end, so that it never takes a lock unseen."""
    running = asyncio.get_running_loop().run_in_executor(threads, connection.execute, sql)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({running})
        raise


def _open_sqlite(url: str) -> apsw.Connection:
    if "driver=sqlite3" in url:
        raise SettingsError("url", "names the driver sqlite3: the systems open the file through apsw, leave it out")
    connection = apsw.Connection(urlsplit(url).path[1:])
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _sqlite_rows(connection: apsw.Connection, sql: str, parameters: Parameters) -> list[Row]:
    cursor = connection.execute(sql, {name: _for_sqlite(value) for name, value in parameters.items()})
    rows: list[Row] = []
    columns: list[str] = []
    for values in cursor:
        columns = columns or [column[0] for column in cursor.get_description()]  # known while rows are being read only
        rows.append(dict(zip(columns, values, strict=True)))
    return rows


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value


@lru_cache(maxsize=1_000)
def _for_psycopg(sql: str) -> bytes:
    return _PARAMETER.sub(lambda found: found[1] or f"%({found[2]})s", sql.replace("%", "%%")).encode()


def _statements(script: str) -> list[str]:
    """The statements of a script, which are separated by a semicolon at the end of a line."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [part for part in re.split(r";\s*(?:\n|\Z)", "\n".join(lines)) if part.strip()]


def _without_perdure_options(url: str) -> str:
    parts = urlsplit(url)
    options = {name: value for name, value in parse_qsl(parts.query) if name not in _PERDURE_OPTIONS}
    return f"{url.partition('?')[0]}?{urlencode(options)}"
