"""Writes of handlers that commit with their acknowledgement (G5).

Each attempt that asks for it gets a session of its own, with the server's ordinary settings, inside a transaction that
psycopg guards: the handler cannot commit it by accident. The acknowledgement is the store's own statement, run on that
session. psycopg's blocking and async connections have the same methods, so one class serves both kinds of handlers.

Async handlers have at most `SESSIONS_AT_ONCE` such sessions at once, and others wait for their turn: a worker runs a
hundred of them, which is all that a default server has connections for. Blocking ones are as many as there are threads.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from perdure.domain.jobs.transition import Transition
from perdure.engines.postgres.claims.acknowledgements import AcknowledgementPart
from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.faults import translate
from perdure.engines.postgres.database.sessions import COMMIT_DURABLY
from perdure.engines.postgres.database.wire import Params
from perdure.engines.postgres.flows.log_lines import LinePart
from perdure.engines.postgres.flows.steps import StepPart
from perdure.engines.shared.effect_errors import ABANDONED, ENDED_BY_HANDLER
from perdure.errors import ConflictError
from perdure.storage.records import ALONE, Acknowledged, Alongside

_AnyConnection = psycopg.AsyncConnection[Any] | psycopg.Connection[Any]

SESSIONS_AT_ONCE: Final = 20
_CANCEL_TIMEOUT_SECONDS: Final = 5.0
_TROUBLE: Final = {
    TransactionStatus.IDLE: ENDED_BY_HANDLER,
    TransactionStatus.INERROR: "a statement in the handler's transaction failed and the handler went on: let the"
    " error out of the block, or wrap the statement in `connection.transaction()`",
    TransactionStatus.ACTIVE: "a statement of the handler is still under way: finish it before the handler returns",
}


class EffectPart:
    """Begins transactions for handlers."""

    def __init__(self, server: Server, acknowledgements: AcknowledgementPart, steps: StepPart, lines: LinePart) -> None:
        self.server = server
        self.acknowledgements = acknowledgements
        self.steps = steps
        self.lines = lines
        self._turns = asyncio.Semaphore(SESSIONS_AT_ONCE)

    async def begin_effects(self, *, blocking: bool = False) -> OpenEffects:
        """Open a session and begin, when it is our turn."""
        if blocking:
            return await self._begin(blocking=True)
        await self._turns.acquire()
        try:
            effects = await self._begin(blocking=False)
        except BaseException:
            self._turns.release()
            raise
        effects.when_over = self._turns.release
        return effects

    async def _begin(self, *, blocking: bool) -> OpenEffects:
        kind: Any = psycopg.Connection if blocking else psycopg.AsyncConnection
        try:
            connection = await _either(kind.connect(**self.server.params, autocommit=True, prepare_threshold=None))
            try:
                effects = OpenEffects(self, connection, blocking=blocking)
                await effects.enter()
            except BaseException:
                await _either(connection.close())
                raise
        except (psycopg.Error, OSError) as error:
            raise translate(error, self.server.secret) from error
        return effects


class OpenEffects:
    """One transaction of one attempt; it ends once, by the first caller that ends it."""

    def __init__(self, store: EffectPart, connection: _AnyConnection, *, blocking: bool) -> None:
        self.connection = connection
        self._store = store
        self._guard: Any = _Guard(connection, blocking=blocking)
        self._blocking = blocking
        self._ending = threading.Lock()  # taken by the caller that decides how it ends
        self._left = False
        self.when_over: Callable[[], None] | None = None

    async def enter(self) -> None:
        """Begin the transaction."""
        await self._guard.__aenter__()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[Any]:
        """One use by the handler: a savepoint."""
        async with _Guard(self.connection, blocking=self._blocking):
            yield self.connection

    async def commit_with(self, transition: Transition, alongside: Alongside = ALONE) -> Acknowledged:
        """Write the acknowledgement and what goes with it, and commit; a lost claim rolls everything back."""
        try:
            self._require_sound()
            await self._store.steps.apply(alongside.steps, self)
            await self._store.lines.apply(alongside.lines, alongside.keep_lines, self)
            answer = await self._store.acknowledgements.apply([transition], self, alongside.audit)
            if not answer.stale:
                await self.fetch(COMMIT_DURABLY)  # for this transaction alone: the session may be a pooler's
            await self._leave(psycopg.Rollback() if answer.stale else None)
        except (psycopg.Error, OSError) as error:
            raise translate(error, self._store.server.secret) from error
        finally:
            await self._let_go()
        return answer

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back, unless it is over; forced: while the handler still has the connection, which is unusable then."""
        if not forced:
            self._ending.acquire(blocking=False)
            await self._let_go()
        elif self._ending.acquire(blocking=False):
            with suppress(Exception):
                await self._break_off()

    async def fetch(self, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Run one statement of the store's own, with any row factory that the handler has set."""
        cursor: Any = self.connection.cursor(row_factory=tuple_row)
        await _either(cursor.execute(sql, params))
        rows: list[tuple[Any, ...]] = await _either(cursor.fetchall()) if cursor.description else []
        return rows

    def _require_sound(self) -> None:
        if not self._ending.acquire(blocking=False):
            raise ConflictError(ABANDONED)
        if trouble := _TROUBLE.get(self.connection.info.transaction_status):
            raise ConflictError(trouble)

    async def _leave(self, error: BaseException | None) -> None:
        self._left = True
        await self._guard.__aexit__(type(error) if error else None, error, None)

    async def _let_go(self) -> None:
        if not self._left:
            with suppress(Exception):  # the session is closed in any case, and the server then rolls back
                await self._leave(psycopg.Rollback())
        try:
            await _either(self.connection.close())
        finally:
            self._give_turn_back()

    def _give_turn_back(self) -> None:
        when_over, self.when_over = self.when_over, None
        if when_over is not None:
            when_over()

    async def _break_off(self) -> None:
        """End the session from outside: the server rolls back, and further writes raise an error."""
        self._give_turn_back()
        if self.connection.info.transaction_status == TransactionStatus.ACTIVE:
            await _either(self.connection.cancel_safe(timeout=_CANCEL_TIMEOUT_SECONDS))
        with socket.socket(fileno=os.dup(self.connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


class _Guard:
    """psycopg's `connection.transaction()`, blocking or async, as an async context manager."""

    def __init__(self, connection: _AnyConnection, *, blocking: bool) -> None:
        self._transaction: Any = connection.transaction()
        self._names = ("__enter__", "__exit__") if blocking else ("__aenter__", "__aexit__")

    async def __aenter__(self) -> None:
        await _either(getattr(self._transaction, self._names[0])())

    async def __aexit__(self, *error: object) -> bool | None:
        suppressed: bool | None = await _either(getattr(self._transaction, self._names[1])(*error))
        return suppressed


async def _either(value: Any) -> Any:
    """The result of a call, whether it blocked or is to be awaited."""
    return await value if isawaitable(value) else value
