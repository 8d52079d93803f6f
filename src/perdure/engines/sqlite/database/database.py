"""The open database, which all parts of the store share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Final, TypeVar

from perdure.clock import Clock, SystemClock
from perdure.engines.shared.database.instants import span, to_micros
from perdure.engines.shared.database.sql_files import load_statements
from perdure.engines.sqlite.database import files
from perdure.engines.sqlite.database.documents import stored_meets
from perdure.engines.sqlite.database.drivers import (
    OLDEST_VERSION,
    Connection,
    connect,
    library_version,
    library_warning,
)
from perdure.engines.sqlite.database.looking import LookingConnection
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes import wal as log
from perdure.engines.sqlite.lanes.lane import Lane, Work
from perdure.engines.sqlite.lanes.lock_waits import retry_while_locked
from perdure.engines.sqlite.lanes.reader import Reader
from perdure.engines.sqlite.lanes.single_writes import NotNow, SingleWrites
from perdure.engines.sqlite.lanes.writer import Writer
from perdure.errors import StoreRefused, StoreUnavailable

T = TypeVar("T")

PACKAGE: Final = "perdure.engines.sqlite"
DEFAULT_PREFIX: Final = "perdure_"

_log = logging.getLogger("perdure.sqlite")


class Database:
    """One file, its two lanes, the clock, and the names of its tables. `now()` is the clock's time in microseconds.

    `why_read_only`: why this process cannot write the file; then there is only the lane of reads.
    """

    def __init__(self, path: str, driver: str, prefix: str, clock: Clock) -> None:
        self.path = path
        self.driver = driver
        self.prefix = prefix or DEFAULT_PREFIX
        self.clock = clock
        self.now: Final = clock.micros if type(clock) is SystemClock else lambda: to_micros(clock.now())
        self.why_read_only: str | None = None
        self._file: files.OpenFile | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._single_writes: SingleWrites | None = None
        self._listeners: list[Callable[[], None]] = []

    async def open(self) -> None:
        """Check the file, register it, and open both lanes."""
        if self._file is not None:
            return
        _check_library(self.driver)
        self.path = files.prepare(self.path)
        self.why_read_only = files.why_read_only(self.path)
        self._file = files.enter(self.path, self.driver)
        self._reader = Reader(self.connect_to_look, self.begin)
        if self.why_read_only is None:
            self._writer = Writer(self.connect, self.begin, self.log, self.notify)
            self._single_writes = SingleWrites(self.connect, self.begin, self.log, self._writer.ask_for_checkpoint)
        try:
            if self._writer:
                await self._writer.open()
            await self._reader.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish current work and close the file."""
        if self._is_ours_to_close() and self._reader:
            await self._reader.close()
            if self._writer and self._single_writes:
                await self._single_writes.close()  # just before the writer, which then takes nothing more
                await self._writer.close()
            self._leave()

    def abandon(self) -> None:
        """The same without the event loop, which is closed; blocks until the threads have ended."""
        if self._is_ours_to_close() and self._reader:
            if self._writer and self._single_writes:
                self._single_writes.abandon()
                self._writer.abandon()
            self._reader.abandon()
            self._leave()

    @property
    def log(self) -> str:
        """The path of the write-ahead log."""
        return f"{self.path}-wal"

    def write(self, work: Work[T]) -> asyncio.Future[T]:
        """Do work in a transaction that may write; when the future is done, its effect is durable."""
        self._refuse_to_write()
        return _opened(self._writer).submit(work)

    def write_now(self, work: Work[T], *, flushes: bool = True) -> T:
        """Do a small write at once, in this thread, if nothing is in the way; raises NotNow if it was not done."""
        writer, single_writes = self._writer, self._single_writes
        if writer is None or single_writes is None or not writer.is_settled():
            raise NotNow
        result, rings = single_writes.write(work, flushes=flushes)
        if rings:
            self.notify()
        return result

    def read(self, work: Work[T]) -> asyncio.Future[T]:
        """Do work on a consistent snapshot of the database, beside any writing."""
        return _opened(self._reader).submit(work)

    def statements(self, file: str, words: Mapping[str, str] | None = None) -> dict[str, str]:
        """The named statements of one of our files, with this database's names of tables; `words` fill other slots."""
        return load(file, self.prefix, tuple((words or {}).items()))

    def connect(self) -> Connection:
        """A connection that may write, set up for durable commits."""
        self._refuse_to_write()
        self._refuse_another_file()
        link = connect(self.driver, self.path)
        try:
            retry_while_locked(lambda: _set_up(link, self.path))
        except BaseException:
            link.close()
            raise
        return link

    def connect_to_look(self) -> Connection:
        """A connection that only reads."""
        if self.why_read_only is not None:
            self._refuse_another_file()
            looking = LookingConnection(self.driver, self.path, self.why_read_only)
            _define(looking)
            return looking
        link = self.connect()
        link.run("PRAGMA query_only = ON")
        link.run("PRAGMA cache_size = -4000")  # more makes no page of a large file quicker, and the desk larger
        return link

    def listen(self, listener: Callable[[], None]) -> None:
        """Call this on the loop whenever this store has made jobs ready."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Stop calling it."""
        self._listeners.remove(listener)

    def notify(self) -> None:
        """Notify the listeners of this store, on its loop, that jobs are ready."""
        for listener in self._listeners:
            listener()

    def begin(self, connection: Connection, *, looks: bool = True) -> Transaction:
        """A connection that is inside BEGIN, as the parts see it; `looks` whether the file is still where it was."""
        assert self._file is not None  # noqa: S101 - lanes only live while the file is open
        if looks:
            self._file.refuse_stranger(self.path)
        return Transaction(connection, self._file, self.now())

    def _refuse_to_write(self) -> None:
        if self.why_read_only is not None:
            raise StoreRefused(f"{self.path}: the database is read-only: {self.why_read_only}")

    def _refuse_another_file(self) -> None:
        if self._file is not None:
            self._file.refuse_fork(self.path)
            self._file.refuse_stranger(self.path)

    def _is_ours_to_close(self) -> bool:
        return self._file is not None and not self._file.is_of_a_parent()

    def _leave(self) -> None:
        if self._file is not None:
            files.leave(self._file)
            self._file = None


@lru_cache
def load(file: str, prefix: str, words: tuple[tuple[str, str], ...] = ()) -> dict[str, str]:
    """The named statements of one of our files, with names of tables that begin with the prefix."""
    fixed = dict(words)
    return load_statements(
        PACKAGE, file, lambda name: fixed.get(name, f"{prefix}{name}"), lambda length: str(span(length))
    )


def _opened(lane: Lane | None) -> Lane:
    if lane is None:
        raise StoreUnavailable("the store is not open: call open() first")
    return lane


def _check_library(driver: str) -> None:
    version = library_version(driver)
    if version < OLDEST_VERSION:
        raise StoreRefused(
            f"driver {driver} has SQLite {version}, and perdure needs {OLDEST_VERSION} or later: use driver=apsw"
        )
    _warn_once(driver)


@cache
def _warn_once(driver: str) -> None:
    """Warn once per process, however often it opens a database."""
    if warning := library_warning(driver):
        _log.warning("%s", warning)


def _set_up(link: Connection, path: str) -> None:
    if (mode := link.run("PRAGMA journal_mode = WAL")[0][0]) != "wal":
        raise StoreRefused(
            f"{path}: this file system does not support a write-ahead log (got {mode!r}): use a local disk"
        )
    link.run("PRAGMA synchronous = FULL")
    link.run("PRAGMA fullfsync = ON")
    link.run("PRAGMA checkpoint_fullfsync = ON")
    link.run(f"PRAGMA wal_autocheckpoint = {log.AUTOCHECKPOINT_PAGES}")
    link.run(f"PRAGMA journal_size_limit = {log.WAL_LIMIT_BYTES}")
    link.run("PRAGMA temp_store = MEMORY")
    link.run("PRAGMA cache_size = -32000")
    _define(link)


def _define(link: Connection) -> None:
    link.define("perdure_fold", str.casefold)
    link.define("perdure_meets", stored_meets, 2)
