"""Sessions with a lent database are used again by the stores of later tests.

A store on PostgreSQL opens about five sessions, and each costs the server ten times as much as a small test does with
it: a process, and its picture of the catalogue. So a session that a store ends while it is idle is reset and kept, as a
pooler in session mode does, and the next store on the same database begins with it. What is not idle, or is with any
other database, ends for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn

from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.wire import Wire

Connection = psycopg.AsyncConnection[Any]

_MOST: Final = 16  # more would take memory from the server for few stores
_connect: Final = Server._connect
_drop: Final = Wire.drop


class KeptSessions:
    """Idle sessions with one database, as if they had just begun."""

    def __init__(self, address: dict[str, str]) -> None:
        self._address = address  # the parameters of a connection that are those of the database
        self._idle: list[PGconn] = []

    @property
    def processes(self) -> list[int]:
        """The ids of the server's processes that serve them."""
        return [session.backend_pid for session in self._idle]

    def close(self) -> None:
        """End them."""
        while self._idle:
            self._idle.pop().finish()

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Let the stores of this process begin with them and leave them here, for the block."""
        kept = self

        async def connect(server: Server) -> Connection:
            if kept._are_of(server.params) and (session := kept._take()) is not None:
                connection = psycopg.AsyncConnection(session)
                connection._autocommit, connection.prepare_threshold = True, None
                return connection
            return await _connect(server)

        def drop(wire: Wire) -> None:
            if not kept._keep(wire):
                _drop(wire)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Server, "_connect", connect)
            patch.setattr(Wire, "drop", drop)
            yield

    def _are_of(self, params: dict[str, Any]) -> bool:
        """Whether they may serve a connection with these parameters; its own options would outlive every reset."""
        return not params.get("options") and {name: params.get(name) for name in self._address} == self._address

    def _take(self) -> PGconn | None:
        """A session that the server has not ended meanwhile."""
        while self._idle:
            session = self._idle.pop()
            if session.exec_(b"").status == ExecStatus.EMPTY_QUERY:
                return session
            session.finish()
        return None

    def _keep(self, wire: Wire) -> bool:
        """Whether the session that a store has ended is kept; not one in the middle of anything."""
        if hasattr(wire._connection, "_pool"):
            return True  # it was kept before, and may be another store's by now
        if wire._loop.is_closed() or wire._lost or wire._posted or wire._answer or not wire.is_sound():
            return False
        session = wire._pgconn
        if len(self._idle) >= _MOST or not self._are_of(_params(session)):
            return False
        wire._lose(psycopg.OperationalError())
        if session.exec_(b"DISCARD ALL").status != ExecStatus.COMMAND_OK:
            return False
        while session.notifies() is not None:
            pass  # of channels that the store has listened to
        wire._connection._pool = None  # it does not complain then that it is not closed
        self._idle.append(session)
        return True


def _params(session: PGconn) -> dict[str, Any]:
    if session.status != ConnStatus.OK:
        return {}
    return {"host": session.host.decode(), "dbname": session.db.decode(), "options": session.options.decode()}
