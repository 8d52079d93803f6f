"""The two SQLite libraries behind one tiny interface.

`apsw` carries a current SQLite of its own and is the default. `sqlite3` is the one Python was built with: choose it
where the app itself opens the same file through it, because two libraries on one file in one process break the file's
locks. Both hand out errors of our tree, and neither waits for locks: the caller retries.

Both keep the plan of a statement for all bound values (QPSG), where Python supports that: otherwise SQLite plans many
of our statements again each time, which takes several times as long as running them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote

from perdure.engines.sqlite.database.faults import failure
from perdure.errors import SettingsError, StoreError

Row = tuple[Any, ...]
Params = Sequence[Any] | Mapping[str, Any]
Version = tuple[int, int, int]

DRIVERS: Final = ("apsw", "sqlite3")
OLDEST_VERSION: Final = (3, 38, 0)
_PAGES_OF_A_PIECE: Final = 1_000
_STEPS_OF_A_STATEMENT: Final = 10_000  # a millisecond or less
# The versions that mend the WAL-reset bug, by which a database can be corrupted: one for each line that is kept up.
_MENDED: Final = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


class Connection(Protocol):
    """What the engine needs of a connection."""

    def run(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def change(self, sql: str, params: Params = ()) -> int:
        """Run one statement that writes and return how many rows it touched."""

    def define(self, name: str, function: Callable[..., Any], takes: int = 1) -> None:
        """Make a function of so many texts available to SQL."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def raw(self) -> Any:
        """The library's own connection: what a handler is given."""

    def reclaim(self) -> None:
        """Reset the row settings that a user of the raw connection has changed."""

    def copy_from(self, source: Connection, between: Callable[[], None]) -> None:
        """Take over a whole database from a connection of the same library, and call `between` after each piece.

        A source inside a transaction is copied as that transaction sees it.
        """

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """Interrupt a long statement once this returns True; it is called now and then in the statement's thread.

        The libraries' own interrupt would also end all that follows for as long as a cursor is left open.
        """

    def close(self) -> None:
        """Close the file."""


class ApswConnection:
    """A connection through apsw."""

    def __init__(self, path: str, options: str = "") -> None:
        import apsw  # noqa: PLC0415 - only the library in use is loaded

        self._path = path
        self._error = apsw.Error
        try:
            if options:
                flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
                self._link = apsw.Connection(_uri(path, options), flags=flags, statementcachesize=200)
            else:
                self._link = apsw.Connection(path, statementcachesize=200)
            self._link.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        except apsw.Error as error:
            raise self._failure(error) from error

    def run(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            return self._link.execute(sql, params).fetchall()
        except self._error as error:
            raise self._failure(error) from error

    def change(self, sql: str, params: Params = ()) -> int:
        """Run one statement that writes and return how many rows it touched."""
        try:
            self._link.execute(sql, params)
        except self._error as error:
            raise self._failure(error) from error
        return self._link.changes()

    def define(self, name: str, function: Callable[..., Any], takes: int = 1) -> None:
        """Make a function of so many texts available to SQL."""
        self._link.create_scalar_function(name, function, takes, deterministic=True)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._link.in_transaction

    @property
    def raw(self) -> Any:
        """The library's own connection: what a handler is given."""
        return self._link

    def reclaim(self) -> None:
        """Reset the row settings that a user of the raw connection has changed."""
        self._link.row_trace = None
        self._link.exec_trace = None

    def copy_from(self, source: Connection, between: Callable[[], None]) -> None:
        """Take over a whole database, piece by piece."""
        try:
            with self._link.backup("main", source.raw, "main") as copy:
                while not copy.done:
                    copy.step(_PAGES_OF_A_PIECE)
                    between()
        except self._error as error:
            raise self._failure(error) from error

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """Interrupt a long statement once this holds."""
        self._link.set_progress_handler(condition, _STEPS_OF_A_STATEMENT)

    def close(self) -> None:
        """Close the file."""
        self._link.close(force=True)  # also if a handler has left a cursor in the middle of its statements

    def _failure(self, error: Exception) -> StoreError:
        return failure(getattr(error, "extendedresult", 1), str(error), self._path)


class StdlibConnection:
    """A connection through the standard library's sqlite3."""

    def __init__(self, path: str, options: str = "") -> None:
        import sqlite3  # noqa: PLC0415 - as above

        self._path = path
        self._error = sqlite3.Error
        try:
            self._link = sqlite3.connect(
                _uri(path, options) if options else path,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=200,
                uri=bool(options),
            )
            if sys.version_info >= (3, 12):
                self._link.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, True)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def run(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            return self._link.execute(sql, params).fetchall()
        except self._error as error:
            raise self._failure(error) from error

    def change(self, sql: str, params: Params = ()) -> int:
        """Run one statement that writes and return how many rows it touched."""
        try:
            return self._link.execute(sql, params).rowcount
        except self._error as error:
            raise self._failure(error) from error

    def define(self, name: str, function: Callable[..., Any], takes: int = 1) -> None:
        """Make a function of so many texts available to SQL."""
        self._link.create_function(name, takes, function, deterministic=True)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._link.in_transaction

    @property
    def raw(self) -> Any:
        """The library's own connection: what a handler is given."""
        return self._link

    def reclaim(self) -> None:
        """Reset the row settings that a user of the raw connection has changed."""
        self._link.row_factory = None
        self._link.text_factory = str

    def copy_from(self, source: Connection, between: Callable[[], None]) -> None:
        """Take over a whole database, piece by piece."""
        try:
            source.raw.backup(self._link, pages=_PAGES_OF_A_PIECE, progress=lambda *_: between())
        except self._error as error:
            raise self._failure(error) from error

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """Interrupt a long statement once this holds."""
        self._link.set_progress_handler(condition, _STEPS_OF_A_STATEMENT)

    def close(self) -> None:
        """Close the file."""
        self._link.close()

    def _failure(self, error: Exception) -> StoreError:
        return failure(getattr(error, "sqlite_errorcode", 1), str(error), self._path)


def check_driver(driver: str) -> str:
    """Accept the name of a driver."""
    if driver not in DRIVERS:
        raise SettingsError("driver", f"must be apsw or sqlite3, got {driver!r}")
    return driver


def connect(driver: str, path: str, options: str = "") -> Connection:
    """Open a connection with the chosen library; `options` are those of an SQLite URI that only reads."""
    return ApswConnection(path, options) if driver == "apsw" else StdlibConnection(path, options)


def _uri(path: str, options: str) -> str:
    return f"file:{quote(os.fsencode(path))}?{options}"


def library_version(driver: str) -> Version:
    """The version of the SQLite library behind a driver."""
    if driver == "apsw":
        import apsw  # noqa: PLC0415 - as above

        text = apsw.sqlite_lib_version()
    else:
        import sqlite3  # noqa: PLC0415 - as above

        text = sqlite3.sqlite_version
    major, minor, patch = (int(part) for part in text.split(".")[:3])
    return major, minor, patch


def library_warning(driver: str, version: Version | None = None) -> str | None:
    """What is wrong with the driver's SQLite library, if anything: for the log at start and for `perdure doctor`."""
    major, minor, patch = version or library_version(driver)
    if (major, minor, patch) >= _MENDED[0]:
        return None
    if any((major, minor) == line[:2] and patch >= line[2] for line in _MENDED[1:]):
        return None
    return (
        f"SQLite {major}.{minor}.{patch} behind driver {driver!r} has the WAL-reset bug, which can in rare cases "
        "corrupt a database under several writers: keep this driver while your own code opens the file through "
        "Python's sqlite3, and move to a Python with SQLite 3.51.3, 3.50.7 or 3.44.6 and later; otherwise use "
        "driver=apsw"
    )
