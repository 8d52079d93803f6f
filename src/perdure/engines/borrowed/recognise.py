"""The type of a connection, recognised by the names of its classes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from perdure.engines.borrowed import wrappers
from perdure.engines.borrowed.asyncpg import BorrowedAsyncpg
from perdure.engines.borrowed.connection import Borrowed
from perdure.engines.borrowed.psycopg import BorrowedAsyncPsycopg, BorrowedPsycopg
from perdure.engines.borrowed.sqlite import BorrowedAiosqlite, BorrowedApsw, BorrowedStdlib
from perdure.errors import ArgumentError

_Name = tuple[str, str]


class Wrapper(Struct, frozen=True):
    """Something around a driver's connection, and the way to it."""

    unwrap: Callable[[Any], Awaitable[Any]]
    is_async: bool = False


_DRIVERS: Final[dict[_Name, type[Any]]] = {
    ("psycopg", "Connection"): BorrowedPsycopg,
    ("psycopg", "AsyncConnection"): BorrowedAsyncPsycopg,
    ("asyncpg", "Connection"): BorrowedAsyncpg,
    ("asyncpg", "PoolConnectionProxy"): BorrowedAsyncpg,
    ("sqlite3", "Connection"): BorrowedStdlib,
    ("aiosqlite", "Connection"): BorrowedAiosqlite,
    ("apsw", "Connection"): BorrowedApsw,
}
_WRAPPERS: Final[dict[_Name, Wrapper]] = {
    ("sqlalchemy", "Connection"): Wrapper(wrappers.of_sqlalchemy_connection),
    ("sqlalchemy", "Session"): Wrapper(wrappers.of_sqlalchemy_session),
    ("sqlalchemy", "scoped_session"): Wrapper(wrappers.of_sqlalchemy_session),
    ("sqlalchemy", "AsyncConnection"): Wrapper(wrappers.of_async_sqlalchemy_connection, is_async=True),
    ("sqlalchemy", "AsyncSession"): Wrapper(wrappers.of_async_sqlalchemy_session, is_async=True),
    ("sqlalchemy", "async_scoped_session"): Wrapper(wrappers.of_async_sqlalchemy_session, is_async=True),
    ("django", "ConnectionProxy"): Wrapper(wrappers.of_django),
    ("django", "BaseDatabaseWrapper"): Wrapper(wrappers.of_django),
}
_SOURCES: Final = frozenset({"Engine", "AsyncEngine", "sessionmaker", "async_sessionmaker", "Pool", "ConnectionPool"})
_POOLS: Final = frozenset({"psycopg_pool", "asyncpg", "sqlalchemy"})
_KNOWN: Final = "psycopg 3, asyncpg, sqlite3, aiosqlite, apsw, SQLAlchemy 2 or Django"


class CallerConnection:
    """A caller's connection: recognised, and not used yet."""

    def __init__(self, connection: Any, *, blocking: bool) -> None:
        self._connection = connection
        names = _names(connection)
        self._wrapper = next((_WRAPPERS[name] for name in names if name in _WRAPPERS), None)
        self._driver = next((_DRIVERS[name] for name in names if name in _DRIVERS), None)
        found = self._wrapper or self._driver
        if found is None:
            raise _unknown(connection, names)
        if blocking and found.is_async:
            raise ArgumentError("connection", f"is asynchronous ({names[0][0]}): await enqueue(...) instead")

    async def borrow(self) -> Borrowed:
        """The driver's own connection, ready to run statements."""
        driver, connection = self._driver, self._connection
        if self._wrapper is not None:
            connection = await self._wrapper.unwrap(connection)
            names = _names(connection)
            driver = next((_DRIVERS[name] for name in names if name in _DRIVERS), None)
            if driver is None:
                raise _unknown(connection, names)
        assert driver is not None  # noqa: S101 - it is a wrapper or a driver
        borrowed: Borrowed = driver(connection)
        return borrowed


def _names(connection: Any) -> list[_Name]:
    """Package and name of every class it has; `__class__` sees through the proxies of tracing tools."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in connection.__class__.__mro__]


def _unknown(connection: Any, names: list[_Name]) -> ArgumentError:
    kind = connection.__class__
    called = f"{kind.__module__}.{kind.__qualname__}"
    if any(home in _POOLS and name.removeprefix("Async") in _SOURCES for home, name in names):
        return ArgumentError("connection", f"is where connections come from ({called}): pass one of them")
    if any(home == "psycopg2" for home, _ in names):
        return ArgumentError("connection", f"is of psycopg2 ({called}): use psycopg 3, whose package is `psycopg`")
    return ArgumentError("connection", f"is a {called}: hand over an open connection or session of {_KNOWN}")
