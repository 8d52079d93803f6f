"""A migrated database for every test, although the migrations do not run for every test.

An SQLite file is copied. On PostgreSQL a copy would make hundreds of files, and so would the migrations: that is what
cost most of the time of a small test. There one database is used again and again: its rows are deleted and its
sequences begin anew, and tables that the test has made are dropped. A test that has changed anything else, or has left
much behind, costs that database its life. Sessions that stores have ended are kept for the next ones: see
`kept_sessions`.
"""

from __future__ import annotations

import asyncio
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, LiteralString
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier
from tests.support.databases.kept_sessions import KeptSessions

from perdure.app.connect import store_for

SCHEMA: Final = "perdure"
_USES: Final = 100  # what was deleted stays in the files, and would slow down those who come after
_PAGES: Final = 64

_END_SESSIONS: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> ALL(%s) AND backend_type = 'client backend'
"""
_TABLES: Final = """
    SELECT oid::regclass::text FROM pg_class
    WHERE relkind = 'r' AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
"""
# Whatever is created, altered or dropped leaves its mark on a row of these catalogues.
_STATE: Final = """
    SELECT
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_class),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_namespace),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_attribute WHERE attrelid >= 16384),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_attrdef),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_constraint WHERE oid >= 16384),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_proc WHERE oid >= 16384),
        (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_trigger),
        (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
        (SELECT string_agg(m::text, ' ' ORDER BY number) FROM perdure.migration m)
"""
_FILLED: Final = """
    SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class
    WHERE relnamespace = 'perdure'::regnamespace AND relkind = 'r' AND relname <> 'migration'
        AND pg_relation_size(oid) > 0
"""
_REWIND: Final = """
    SELECT format('SELECT setval(%L, %s, %L)', seqrelid::regclass, coalesce(last, seqstart), last IS NOT NULL)
    FROM pg_sequence, pg_sequence_last_value(seqrelid) AS last
"""


class SqliteFiles:
    """Copies of one migrated file."""

    def __init__(self, folder: Path) -> None:
        self._original = folder / "original.db"
        migrate(f"sqlite:///{self._original}")

    def put(self, path: Path) -> None:
        """Make a copy there."""
        shutil.copyfile(self._original, path)


class PostgresDatabase:
    """A migrated database on a server, for one test after the other."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._name: str | None = None
        self._kept: KeptSessions | None = None
        self._own: psycopg.Connection[tuple[Any, ...]] | None = None
        self._uses = 0
        self._tables: set[str] = set()
        self._rewind: set[str] = set()
        self._state: tuple[Any, ...] = ()

    @contextmanager
    def lent(self) -> Iterator[str]:
        """Where it is: with our tables, in the schema `SCHEMA`, and nothing in them."""
        kept = self._kept or self._make()
        self._uses += 1
        try:
            with kept.at_hand():
                yield self._url
        finally:
            if self._uses >= _USES or not self._clear():
                self.drop()

    def drop(self) -> None:
        """Leave nothing behind on a server that may not be ours."""
        for open_ones in (self._kept, self._own):
            if open_ones is not None:
                open_ones.close()
        self._kept = self._own = None
        if self._name is not None:
            self._command("DROP DATABASE {} WITH (FORCE)", self._name)
            self._name = None

    @property
    def _url(self) -> str:
        return urlsplit(self._server)._replace(path=f"/{self._name}").geturl()

    def _make(self) -> KeptSessions:
        self._name, self._uses = f"t_{uuid.uuid4().hex[:16]}", 0
        self._command("CREATE DATABASE {}", self._name)
        migrate(self._url)
        self._own = connection = psycopg.connect(self._url, autocommit=True)
        self._tables = _column(connection, _TABLES)
        self._rewind = _column(connection, _REWIND)
        [self._state] = connection.execute(_STATE).fetchall()
        self._kept = KeptSessions({"host": connection.info.host, "dbname": connection.info.dbname})
        return self._kept

    def _clear(self) -> bool:
        """Delete what a test has left; False if that is not enough to make the database as good as new."""
        connection, kept = self._own, self._kept
        if connection is None or kept is None:
            return False
        with suppress(psycopg.Error):
            ours = [connection.info.backend_pid, *kept.processes]
            while connection.execute(_END_SESSIONS, [ours]).fetchall():  # none may write after we have deleted
                time.sleep(0.002)
            if made := _column(connection, _TABLES) - self._tables:  # all at once: they may refer to each other
                connection.execute(f"DROP TABLE {', '.join(made)}".encode())
            if connection.execute(_STATE).fetchall() != [self._state]:
                return False
            filled = connection.execute(_FILLED).fetchall()
            deletes = {f"DELETE FROM {SCHEMA}.{name}" for name, _ in filled}
            connection.execute("SET session_replication_role = replica")  # or the audit trail would not be emptied
            connection.execute(";".join(deletes | self._rewind).encode())
            connection.execute("RESET session_replication_role")
            return all(pages <= _PAGES for _, pages in filled)
        return False

    def _command(self, sql: LiteralString, name: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(SQL(sql).format(Identifier(name)))


def _column(connection: psycopg.Connection[tuple[Any, ...]], sql: LiteralString) -> set[Any]:
    return {value for (value,) in connection.execute(sql)}


def migrate(url: str) -> None:
    """Make our tables."""

    async def make_tables() -> None:
        store = store_for(url)
        await store.open()
        try:
            await store.migrate()
        finally:
            await store.close()

    asyncio.run(make_tables())
