"""One session with the server, without the driver's cursors.

The driver's own cursors are made for every need and take three times as long to ask the server as the server takes to
answer. Here a statement is prepared once, its parameters go out as texts, the answer comes back in binary and is read
by the driver's fast loaders; the socket stays registered with the event loop as long as the session lives.

A statement whose answer is not awaited is deferred, and sent with the next one: the event loop is busy with jobs, and
each return to a session costs more than the round trip. A statement that must run only after the last one is committed
is posted behind it, and its answer is read at the next use of the session.

Behind a pooler that lends sessions for one transaction, `opening` holds the statements that begin a transaction and set
it up. They travel in the same round as the first statement of the transaction. A statement outside of a transaction
becomes one of its own, which is begun, set up and committed in that round.

A session is used by one task at a time. A task that is cancelled while the server works leaves the session unusable: it
is dropped, and the outcome of the statement is unknown.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, ReadOnlySqlTransaction, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from perdure.engines.postgres.database.arrays import UnstorableTextError
from perdure.engines.shared.database.instants import on_calendar
from perdure.engines.shared.database.placeholders import numbered

Params = Mapping[str, object]
Statement = tuple[str, Params | None]
T = TypeVar("T")

_FINE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY})
_LOST: Final = "the connection was lost"
_MISPLACED: Final = (InvalidSqlStatementName, ReadOnlySqlTransaction)


class Asks(Protocol):
    """Runs a statement: a wire, or a session that a handler uses."""

    async def fetch(self, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Run one statement with `%(name)s` parameters and fetch what it answers."""


class Wire:
    """A session that runs one statement after the other; raises the driver's errors."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], *, prepare: bool, opening: Sequence[str] | None = None
    ) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._prepare = prepare
        self._prepared: dict[str, tuple[bytes, tuple[str, ...]]] = {}
        self._is_shared = opening is not None
        self._opening: list[Statement] = [(sql, None) for sql in opening or ("BEGIN",)]
        self._is_open = False  # a transaction is
        self._deferred: list[Statement] = []
        self._posted = False  # the answer to a statement is still to be read
        self._reader = Transformer()  # of no connection: instants are read as UTC in any session time zone
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[None] | None = None
        self._socket = self._pgconn.socket
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._loop.add_reader(self._socket, self._on_readable)
        self._lost = False
        self._unfit = (
            False  # a prepared statement is unknown there, or the server accepts no writes: another server may
        )

    async def fetch(self, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Run one statement with `%(name)s` parameters, after those that were deferred, and fetch what it answers."""
        if self._deferred or (self._is_shared and not self._is_open):
            [rows] = await self.fetch_each((sql, params))
            return rows
        [ready] = await self._prepared_all((sql, params))
        self._send(*ready)
        return self._rows(await self._finish())

    async def fetch_and_post(self, statement: Statement, posted: Statement) -> list[tuple[Any, ...]]:
        """Run one statement, and behind it, in a transaction of its own, another whose answer is not awaited.

        Not behind a pooler, which may give the second transaction to another session than the first.
        """
        ready = await self._prepared_all(statement, posted)
        self._pgconn.enter_pipeline_mode()
        for each in ready:
            self._send(*each)
            self._pgconn.pipeline_sync()
        self._posted = True
        return self._rows(self._judged(await self._until_sync())[0])

    async def fetch_each(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round, after those that were deferred, and fetch what each of them answers."""
        if self._is_shared and not self._is_open:
            return await self._transaction_of(statements)
        self._deferred += statements
        results = await self._send_deferred()
        return [self._rows(result) for result in results[-len(statements) :]]

    def defer(self, sql: str, params: Params | None = None) -> None:
        """Have a statement run before the next one that is fetched, in the same round; that one raises its errors."""
        self._deferred.append((sql, params))

    async def script(self, sql: str) -> None:
        """Run many statements without parameters, separated by semicolons."""
        if self._deferred:
            await self._send_deferred()
        await self._prepared_all()
        self._pgconn.send_query(sql.encode())
        await self._finish()

    async def transaction(self, work: Callable[[Wire], Awaitable[T]]) -> T:
        """Run work inside a transaction, which is rolled back if the work raises."""
        self._deferred += self._opening
        self._is_open = True
        try:
            value = await work(self)
            await self.fetch("COMMIT")
        except Exception:
            await self._roll_back()
            raise
        except BaseException:
            self.drop()
            raise
        finally:
            self._is_open = False
        return value

    def is_sound(self, *status: TransactionStatus) -> bool:
        """Whether the server is still there, as far as the client knows without a query, and idle (or as given)."""
        while not self._lost and self._poll.poll(0):  # an idle server sends only a notice that it closes
            self._on_readable()  # then it closes the connection
        if self._lost or self._unfit or self._pgconn.status != ConnStatus.OK:
            return False
        return self._posted or self._pgconn.transaction_status in (status or (TransactionStatus.IDLE,))

    def drop(self) -> None:
        """End the session at once, even in the middle of a statement."""
        if not self._lost:
            self._lose(psycopg.OperationalError(_LOST))
        self._pgconn.finish()

    async def _transaction_of(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Run statements as a transaction, all of it in one round."""
        self._deferred += self._opening
        self._is_open = True
        try:
            return (await self.fetch_each(*statements, ("COMMIT", None)))[:-1]
        except Exception:
            await self._roll_back()
            raise
        finally:
            self._is_open = False

    async def _roll_back(self) -> None:
        """End a transaction that has failed; at once, for it keeps the session of a pooler from all others."""
        self._deferred.clear()
        if self.is_sound(TransactionStatus.INTRANS, TransactionStatus.INERROR):
            await self.fetch("ROLLBACK")

    def _ready(self, sql: str, params: Params | None) -> tuple[str | bytes, list[bytes | None] | None]:
        """A statement as it is sent: its name if it is prepared, else its text; and its parameters."""
        statement, names = self._prepared[sql] if self._prepare else numbered(sql)
        return statement, [as_bytes(params[name]) for name in names] if params else None

    def _send(self, statement: str | bytes, values: list[bytes | None] | None) -> None:
        if isinstance(statement, bytes):
            self._pgconn.send_query_prepared(statement, values, result_format=Format.BINARY)
        else:
            self._pgconn.send_query_params(statement.encode(), values, result_format=Format.BINARY)

    async def _send_deferred(self) -> list[PGresult]:
        """Send everything that was deferred at once; what each statement answers. Raises the first error among all."""
        statements, self._deferred = self._deferred, []
        ready = await self._prepared_all(*statements)
        self._pgconn.enter_pipeline_mode()
        for statement, values in ready:
            self._send(statement, values)
        self._pgconn.pipeline_sync()
        results = await self._until_sync()
        if self._pgconn.status == ConnStatus.OK:
            self._pgconn.exit_pipeline_mode()
        return self._judged(results)

    async def _prepared_all(self, *statements: Statement) -> list[tuple[str | bytes, list[bytes | None] | None]]:
        """Statements as they are sent; raises, if at all, before anything is. What was posted has been answered."""
        if self._posted:
            await self._until_sync()
            if self._pgconn.status == ConnStatus.OK:
                self._pgconn.exit_pipeline_mode()
            self._posted = False
        for sql, _ in statements:
            if self._prepare and sql not in self._prepared:
                await self._prepare_now(sql)
        return [self._ready(sql, params) for sql, params in statements]

    async def _prepare_now(self, sql: str) -> None:
        text, names = numbered(sql)
        name = b"perdure_%d" % len(self._prepared)
        self._pgconn.send_prepare(name, text.encode())
        await self._finish()
        self._prepared[sql] = name, names

    async def _finish(self) -> PGresult:
        """Send what is to be sent and collect what comes; raises the first error among it."""
        self._start_sending()
        await self._answered()
        results: list[PGresult] = []
        while (result := await self._next_result()) is not None:
            results.append(result)
        return self._judged(results)[0]

    async def _until_sync(self) -> list[PGresult]:
        """The same for statements that were sent together; those behind one that failed were not run."""
        self._start_sending()
        results: list[PGresult] = []
        while True:
            result = await self._next_result()
            if result is None:  # the end of one statement, or of the session
                if self._pgconn.status != ConnStatus.OK:
                    break
            elif result.status == ExecStatus.PIPELINE_SYNC:
                break
            elif result.status != ExecStatus.PIPELINE_ABORTED:
                results.append(result)
        return results

    def _start_sending(self) -> None:
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._on_writable)

    async def _next_result(self) -> PGresult | None:
        while self._pgconn.is_busy():
            await self._answered()
        return self._pgconn.get_result()

    def _judged(self, results: list[PGresult]) -> list[PGresult]:
        if not results:
            raise psycopg.OperationalError(_LOST)
        for result in results:
            if result.status not in _FINE:
                error = error_from_result(result, encoding="utf-8")
                self._unfit = self._unfit or isinstance(error, _MISPLACED)
                raise error
        return results

    async def _answered(self) -> None:
        if self._lost:
            raise psycopg.OperationalError(_LOST)
        self._answer = self._loop.create_future()
        try:
            await self._answer
        except asyncio.CancelledError:
            self.drop()
            raise

    def _rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        if not result.ntuples:
            return []
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)

    def _on_readable(self) -> None:
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as error:
            self._lose(error)
            return
        if self._answer is None:
            if self._pgconn.status != ConnStatus.OK:
                self._lose(psycopg.OperationalError(_LOST))
        elif not self._pgconn.is_busy():
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_result(None)

    def _on_writable(self) -> None:
        try:
            if self._pgconn.flush():
                return
        except psycopg.OperationalError as error:
            self._lose(error)
        self._loop.remove_writer(self._socket)

    def _lose(self, error: psycopg.OperationalError) -> None:
        if self._lost:  # its socket is closed, and the number may by now be that of another session
            return
        self._lost = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)


def as_bytes(value: object) -> bytes | None:
    """A parameter as PostgreSQL reads it in text form; the statement's own casts say what it is."""
    if value is None:
        return None
    if isinstance(value, datetime):
        value = on_calendar(value).isoformat()
    elif isinstance(value, timedelta):
        value = f"{value.total_seconds()} seconds"
    try:
        text = str(value).encode()
    except UnicodeEncodeError as error:
        raise UnstorableTextError("must not contain half a surrogate pair") from error
    if b"\0" in text:
        raise UnstorableTextError("must not contain the NUL character")
    return text
