"""Connections that reconnect by themselves.

A pool of a few connections for one purpose, opened when first needed. A connection that the server closed while it was
idle is noticed before its next use, so that a restart of the server causes no error. One that breaks while a statement
is under way leaves that statement in doubt: the caller gets StoreUnavailable, and the next call gets a new connection.
A deadlock, or a transaction that could not be serialized, was certainly rolled back and is retried here.

Sessions use index scans: sequential and bitmap scans and hash or merge joins are switched off, because a plan made
while a table was small would be kept when it has grown; durability is never less than `synchronous_commit=on`. Behind a
pooler that lends sessions for one transaction, each transaction sets this for itself: see `sessions`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from perdure.engines.postgres.database.arrays import UnstorableTextError
from perdure.engines.postgres.database.faults import ROLLED_BACK, translate
from perdure.engines.postgres.database.sessions import BEGIN_SHARED, Connection, Pooler, Sessions, Terms, are_shared
from perdure.engines.postgres.database.versions import require_version
from perdure.engines.postgres.database.wire import Params, Statement, Wire
from perdure.errors import ForkError, SettingsError, StoreRefused, StoreUnavailable
from perdure.policy.secrets.passwords import ESCAPES, strike
from perdure.storage.time_limits import deadline, too_late

T = TypeVar("T")

_ORDINARY: Final = Terms()
_CALL_TRIES: Final = 4
_LIMIT: Final = "SELECT set_config('statement_timeout', %(limit)s::text, true)"
_GRACE_SECONDS: Final = 1.0  # for the server to report the timeout itself
_DEFAULTS: Final = {
    "application_name": "perdure",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


class Server:
    """Where the database is, and how a session with it begins.

    The options `prepare` and `pooler` of the URL are ours.
    """

    def __init__(self, url: str, *, field: str = "url") -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        prepare = options.pop("prepare", "on")
        if prepare not in {"on", "off"}:
            raise SettingsError(field, f"has prepare={prepare!r}: write on or off")
        self.pooler = _pooler_of(field, options.pop("pooler", Pooler.AUTO))
        self.sessions = Sessions.SHARED if self.pooler is Pooler.TRANSACTION else Sessions.UNKNOWN
        self._prepares = prepare == "on"
        try:
            # Not urlunsplit, which drops the // of a URL without a host: a socket's folder is named in the query.
            query = urlencode(options, quote_via=quote)
            given = conninfo_to_dict(f"postgresql://{parts.netloc}{parts.path}?{query}")
        except psycopg.Error as error:
            said = strike(str(error).strip(), parts.password, quoted=True)
            raise SettingsError(field, f"is not understood: {said}") from None
        _check_address(field, str(given.get("host") or ""), str(given.get("port") or ""))
        self.params: dict[str, Any] = {**_DEFAULTS, **given}
        password = given.get("password")
        self.secret = str(password) if password else None

    @property
    def shares_sessions(self) -> bool:
        """Whether a session is ours for one transaction only; known once there was a connection."""
        return self.sessions is Sessions.SHARED

    async def connect(self, terms: Terms = _ORDINARY) -> Connection:
        """Open one connection, and set up its session unless that is shared; raises the driver's own errors."""
        connection = await self._connect()
        try:
            if not self.shares_sessions:
                await self._set_up(connection, terms)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def wire(self, terms: Terms, *, prepare: bool) -> Wire:
        """Open a connection that runs the store's statements."""
        connection = await self.connect(terms)
        if self.shares_sessions:
            return Wire(connection, prepare=False, opening=(BEGIN_SHARED, terms.for_transaction()))
        return Wire(connection, prepare=prepare and self._prepares)

    async def _connect(self) -> Connection:
        params = self.params | {"client_encoding": "UTF8"}
        connection = await psycopg.AsyncConnection.connect(**params, autocommit=True, prepare_threshold=None)
        try:
            require_version(connection.info.server_version)
        except StoreRefused:
            await connection.close()
            raise
        return connection

    async def _set_up(self, connection: Connection, terms: Terms) -> None:
        """Set up a session that is ours; one that a pooler lends is left alone until that is known."""
        is_known = self.pooler is Pooler.SESSION or self.sessions is Sessions.POOLED
        only_in = None if is_known else connection.info.backend_pid
        if await (await connection.execute(terms.for_session(only_in).encode())).fetchall():
            self.sessions = Sessions.POOLED if is_known else Sessions.DIRECT
        elif await are_shared(connection, self._connect):
            async with connection.transaction():  # a pooler in statement mode refuses what takes more than one round
                await connection.execute("SELECT 1")
            self.sessions = Sessions.SHARED
        else:
            self.sessions = Sessions.POOLED
            await connection.execute(terms.for_session(None).encode())


def _pooler_of(field: str, given: str) -> Pooler:
    try:
        return Pooler(given)
    except ValueError:
        raise SettingsError(field, f"has pooler={given!r}: write {', '.join(Pooler)}") from None


def _check_address(field: str, hosts: str, ports: str) -> None:
    """Refuse a URL that an unescaped password has split; the error shows none of it, as it may be the password."""
    if "@" in hosts or not all(port.isdecimal() for port in ports.split(",") if port):
        raise SettingsError(field, f"names no server, or an invalid port: {ESCAPES}")


class Pool:
    """At most `size` connections for one purpose; a caller waits while all are busy."""

    def __init__(self, server: Server, size: int = 1, *, prepare: bool = True, durable: bool = True) -> None:
        self._server = server
        self._prepare = prepare
        self._terms = Terms(generic_plans=prepare, durable=durable)
        self._size = size
        self._turns = asyncio.Semaphore(size)
        self._idle: list[Wire] = []
        self._pid = os.getpid()
        self._closed = True

    def open(self) -> None:
        """Allow connections to be made, from this process and from this event loop."""
        self._pid = os.getpid()
        self._closed = False

    async def run(self, work: Callable[[Wire], Awaitable[T]]) -> T:
        """Run work on a connection, and again if the server rolled it back; raises only our errors."""
        for _ in range(_CALL_TRIES - 1):
            try:
                return await self._run_once(work)
            except ROLLED_BACK:
                continue
        try:
            return await self._run_once(work)
        except ROLLED_BACK as error:
            raise translate(error, self._server.secret) from error

    async def rows(self, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and fetch what it answers; a question with a time limit takes one round, too."""
        if (until := deadline()) is None:
            return await self.run(lambda wire: wire.fetch(sql, params))

        async def ask(wire: Wire, limit: Statement) -> list[tuple[Any, ...]]:
            return (await wire.fetch_each(limit, (sql, params)))[1]

        return await self._in_time(ask, until)

    async def transaction(self, work: Callable[[Wire], Awaitable[T]]) -> T:
        """Run work inside a transaction, within the time limit of the current query, if there is one."""
        if (until := deadline()) is None:
            return await self.run(lambda wire: wire.transaction(work))

        async def ask(wire: Wire, limit: Statement) -> T:
            async def limited(wire: Wire) -> T:
                wire.defer(*limit)
                return await work(wire)

            return await wire.transaction(limited)

        return await self._in_time(ask, until)

    async def _in_time(self, ask: Callable[[Wire, Statement], Awaitable[T]], until: float) -> T:
        """Ask before the time is over; `ask` is given the statement that limits the transaction that it is part of."""
        left = until - time.monotonic()
        if left <= 0:
            raise too_late()
        limit: Statement = (_LIMIT, {"limit": str(max(1, int(left * 1000)))})
        try:
            async with asyncio.timeout(left + _GRACE_SECONDS):
                return await self.run(lambda wire: ask(wire, limit))
        except TimeoutError:
            raise too_late() from None
        except StoreUnavailable as error:  # elsewhere a limit set by the server itself counts as an outage
            if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise too_late() from error
            raise

    async def close(self) -> None:
        """Wait until the connections are free, and close them."""
        if self._pid != os.getpid():
            return
        self._closed = True
        for _ in range(self._size):
            await self._turns.acquire()
        idle, self._idle = self._idle, []
        for wire in idle:
            wire.drop()
        for _ in range(self._size):
            self._turns.release()

    def abandon(self) -> None:
        """Release the connections once the event loop is closed, and nothing is under way."""
        if self._pid != os.getpid():
            return
        self._closed = True
        idle, self._idle = self._idle, []
        for wire in idle:
            with suppress(RuntimeError):  # from the closed loop, which no longer watches it anyway
                wire.drop()
            wire.drop()

    async def _run_once(self, work: Callable[[Wire], Awaitable[T]]) -> T:
        if self._pid != os.getpid():
            raise ForkError("this store was opened before a fork: open a new one in the child process")
        async with self._turns:
            wire = None
            try:
                wire = await self._sound_wire()
                return await work(wire)
            except ROLLED_BACK:
                raise
            except (psycopg.Error, UnstorableTextError, OSError) as error:
                raise translate(error, self._server.secret) from error
            finally:
                if wire is not None:
                    self._put_back(wire)

    async def _sound_wire(self) -> Wire:
        if self._closed:
            raise StoreRefused("the store is not open: call open() first")
        while self._idle:
            wire = self._idle.pop()
            if wire.is_sound():
                return wire
            wire.drop()
        return await self._server.wire(self._terms, prepare=self._prepare)

    def _put_back(self, wire: Wire) -> None:
        if wire.is_sound():
            self._idle.append(wire)
        else:
            wire.drop()
