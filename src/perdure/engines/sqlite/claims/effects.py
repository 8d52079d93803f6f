"""Writes of handlers that commit with their acknowledgement (G5).

Each attempt that asks for it gets a connection of its own after BEGIN IMMEDIATE: it holds the file's one write lock
until the attempt has ended, and all other writes wait. The acknowledgement is the store's own code, run in that
transaction. Async handlers of one store take turns; otherwise each of them would keep asking for the lock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from operator import itemgetter
from typing import Any, Final

from perdure.domain.jobs.transition import Transition
from perdure.engines.shared.effect_errors import ABANDONED, ENDED_BY_HANDLER
from perdure.engines.sqlite.claims.acknowledgements import AcknowledgementPart
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.flows.log_lines import LinePart
from perdure.engines.sqlite.flows.steps import StepPart
from perdure.engines.sqlite.lanes.lock_waits import retry_while_locked, retry_while_locked_async
from perdure.engines.sqlite.lanes.own_thread import in_own_thread
from perdure.errors import ConflictError, StoreError
from perdure.storage.records import ALONE, Acknowledged, Alongside

_COMMIT_TRIES: Final = 100
_COMMIT_RETRY_SECONDS: Final = 0.01
_BEGIN: Final = "BEGIN IMMEDIATE"


class EffectPart:
    """Begins transactions for handlers."""

    def __init__(
        self, database: Database, acknowledgement: AcknowledgementPart, steps: StepPart, lines: LinePart
    ) -> None:
        self._database = database
        self._acknowledgement = acknowledgement
        self._steps = steps
        self._lines = lines
        self._turn = asyncio.Lock()

    async def begin_effects(self, *, blocking: bool = False) -> OpenEffects:
        """Open a connection and take the write lock."""
        if blocking:
            link = self._database.connect()
            with _closed_on_error(link):
                retry_while_locked(lambda: link.run(_BEGIN))
            return OpenEffects(self, link, None)
        await self._turn.acquire()
        try:
            link = self._database.connect()
            with _closed_on_error(link):
                await retry_while_locked_async(lambda: link.run(_BEGIN))
        except BaseException:
            self._turn.release()
            raise
        return OpenEffects(self, link, self._turn.release)

    def finish(self, link: Connection, transition: Transition, alongside: Alongside) -> Acknowledged:
        """Write the acknowledgement, and what goes with it, in a handler's transaction, and end that."""
        transaction = self._database.begin(link)
        self._steps.apply(transaction, alongside.steps)
        self._lines.apply(transaction, alongside.lines, alongside.keep_lines)
        answer = self._acknowledgement.apply(transaction, [transition], alongside.audit)
        link.run("ROLLBACK" if answer.stale else "COMMIT")
        return answer


class OpenEffects:
    """One transaction of one attempt; it ends once, by the first caller that ends it.

    `release` lets the next async handler have its turn; None: the handler runs in a thread and may be blocked.
    """

    def __init__(self, part: EffectPart, link: Connection, release: Callable[[], None] | None) -> None:
        self.connection: Any = link.raw
        self._part = part
        self._link = link
        self._release = release
        self._ending = threading.Lock()  # taken by the caller that decides how it ends
        self._closing = threading.Lock()
        self._closed = False
        self._disarmed = [False]
        # No line of Python: an interrupt that waits for the handler's thread would be raised in it, and be lost.
        link.stop_when(partial(itemgetter(0), self._disarmed))

    @asynccontextmanager
    async def block(self) -> AsyncIterator[Any]:
        """One use by the handler: a savepoint."""
        self._link.run("SAVEPOINT perdure_block")
        try:
            yield self.connection
        except BaseException:
            with suppress(StoreError):  # SQLite may have rolled back everything by itself
                self._link.run("ROLLBACK TO perdure_block")
                self._link.run("RELEASE perdure_block")
            raise
        if not self._link.in_transaction:
            raise ConflictError(ENDED_BY_HANDLER)
        self._link.run("RELEASE perdure_block")

    async def commit_with(self, transition: Transition, alongside: Alongside = ALONE) -> Acknowledged:
        """Write the acknowledgement and what goes with it, and commit; a lost claim rolls everything back."""
        try:
            if not self._ending.acquire(blocking=False):
                raise ConflictError(ABANDONED)
            if self._release is None:
                return self._commit_with(transition, alongside)
            committing = in_own_thread(partial(self._commit_with, transition, alongside))
            while not committing.done():  # too late to stop it: the connection is in use
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({committing})
            return committing.result()
        finally:
            self._let_go()

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back, unless it is over; forced: while its user still has the connection, which is left open."""
        if not forced:
            self._ending.acquire(blocking=False)
            self._let_go()
        elif self._ending.acquire(blocking=False):
            self._disarm()

    def _commit_with(self, transition: Transition, alongside: Alongside) -> Acknowledged:
        if not self._link.in_transaction:
            raise ConflictError(ENDED_BY_HANDLER)
        self._link.reclaim()
        return self._part.finish(self._link, transition, alongside)

    def _let_go(self) -> None:
        """Close, in the thread of the handler: a connection that is closed under its user can take the process down."""
        with self._closing:
            if not self._closed:
                self._closed = True
                with suppress(Exception):  # its user may have left it in any state; closing rolls back as well
                    if self._link.in_transaction:
                        self._link.run("ROLLBACK")
                with suppress(Exception):
                    self._link.close()
        self._pass_turn()

    def _disarm(self) -> None:
        """Roll back from outside, and let the connection write nothing any more."""
        with self._closing:
            self._disarmed[0] = True
            for _ in range(0 if self._closed else _COMMIT_TRIES):
                with suppress(Exception):  # its user is in the middle of a statement that is being stopped
                    self._link.run("PRAGMA query_only = ON")
                    if self._link.in_transaction:
                        self._link.run("ROLLBACK")
                    break
                time.sleep(_COMMIT_RETRY_SECONDS)
        self._pass_turn()

    def _pass_turn(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


class _closed_on_error:  # noqa: N801 - reads as what it does
    def __init__(self, link: Connection) -> None:
        self._link = link

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._link.close()
