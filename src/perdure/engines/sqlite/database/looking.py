"""Connections to a file that this process cannot write.

A database is up to three files: the database itself, the log (`-wal`) with the latest commits, and the log's index
(`-shm`). Which connection is right depends on the log:

- It holds commits. SQLite finds them through the index, which a writer has made, and takes its locks there. The
  connection never creates an index (`readonly_shm`): it would belong to this user, and the writer's user could not open
  it. Without an index the commits cannot be found, so the file is refused.
- There is none, or it is empty: all commits are in the file. Here too SQLite would create both other files, or fail
  where it cannot. So the file is opened as immutable, which creates nothing and takes no locks. That is right only
  while no process writes. A writer would create a log before it changes the file, so each transaction looks for both
  before it begins and after it has ended: if a writer came, what was read is discarded and read again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from perdure.engines.sqlite.database.drivers import Connection, Params, Row, connect
from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.errors import StoreRefused

_WITH_LOG: Final = "mode=ro&readonly_shm=1"
_WITHOUT_LOG: Final = "mode=ro&immutable=1"


class _State(Struct, frozen=True):
    """What a writer changes first."""

    has_log: bool
    size: int
    changed_at: int


class LookingConnection:
    """A connection that opens the file anew when a writer has come since."""

    def __init__(self, driver: str, path: str, why: str) -> None:
        self._driver = driver
        self._path = path
        self._why = why
        self._functions: list[tuple[str, Callable[..., Any], int]] = []
        self._condition: Callable[[], bool] | None = None
        self._state = self._look()
        self._link = self._opened()

    def run(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement; StoreBusy if a writer came while a transaction was open."""
        is_within = self.in_transaction
        if not is_within:
            self._reopen_if_changed()
        rows = self._link.run(sql, params)
        if is_within and not self.in_transaction and self._is_changed():
            raise StoreBusy(f"{self._path}: a process wrote the file while it was read")
        return rows

    def change(self, sql: str, params: Params = ()) -> int:
        """Refused by SQLite."""
        return self._link.change(sql, params)

    def define(self, name: str, function: Callable[..., Any], takes: int = 1) -> None:
        """Make a function of so many texts available to SQL."""
        self._functions.append((name, function, takes))
        self._link.define(name, function, takes)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._link.in_transaction

    @property
    def raw(self) -> Any:
        """The library's own connection."""
        return self._link.raw

    def reclaim(self) -> None:
        """Reset the row settings that a user of the raw connection has changed."""
        self._link.reclaim()

    def copy_from(self, source: Connection, between: Callable[[], None]) -> None:
        """Refused by SQLite."""
        self._link.copy_from(source, between)

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """Interrupt a long statement once this holds."""
        self._condition = condition
        self._link.stop_when(condition)

    def close(self) -> None:
        """Close the file."""
        self._link.close()

    def _reopen_if_changed(self) -> None:
        if self._is_changed():
            self._link.close()
            self._state = self._look()
            self._link = self._opened()
            for name, function, takes in self._functions:
                self._link.define(name, function, takes)
            if self._condition is not None:
                self._link.stop_when(self._condition)

    def _is_changed(self) -> bool:
        """Whether a writer has come; with a log, SQLite's locks say that."""
        return not self._state.has_log and self._look() != self._state

    def _opened(self) -> Connection:
        if self._state.has_log and not os.path.exists(f"{self._path}-shm"):  # noqa: PTH110 - the path is text
            raise StoreRefused(
                f"{self._path}: the database cannot be written ({self._why}), and the index of its log is missing "
                f"({self._path}-shm), so that the latest commits cannot be read: open it once where it can be written, "
                f"with `perdure doctor`, or copy it together with {self._path}-wal to such a place"
            )
        link = connect(self._driver, self._path, _WITH_LOG if self._state.has_log else _WITHOUT_LOG)
        link.run("PRAGMA query_only = ON")
        link.run("PRAGMA temp_store = MEMORY")
        link.run("PRAGMA cache_size = -4000")
        return link

    def _look(self) -> _State:
        try:
            has_log = os.stat(f"{self._path}-wal").st_size > 0  # noqa: PTH116 - as above
        except FileNotFoundError:
            has_log = False
        found = os.stat(self._path)  # noqa: PTH116 - as above
        return _State(has_log, found.st_size, found.st_mtime_ns)
