"""Copies of the database, made while work goes on.

The copy is what one read transaction sees, so no writer waits for it, and later writes do not disturb it;
only the log cannot start over until it is done. It gets its name once it has been opened, checked and flushed: a file
that bears the name is a good backup.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import connect
from perdure.engines.sqlite.lanes.lock_waits import retry_while_locked
from perdure.errors import ArgumentError, StoreRefused, StoreUnavailable
from perdure.storage.operate.backups import Backup

_LEFTOVERS: Final = ("", "-journal", "-wal", "-shm")


class BackupPart:
    """Backups of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/backup.sql")

    async def back_up(self, path: str) -> Backup:
        """Copy the database to a new file, in a thread and through a connection of its own."""
        target = _new_file(path)
        given_up = threading.Event()
        try:
            return await asyncio.to_thread(self._back_up, target, given_up)
        except asyncio.CancelledError:
            given_up.set()  # the thread notices, and deletes its draft
            raise

    def _back_up(self, target: str, given_up: threading.Event) -> Backup:
        begun = self._database.clock.monotonic()
        folder, name = os.path.split(target)
        draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.part")  # noqa: PTH118 - paths are text here

        def stop_if_given_up() -> None:
            if given_up.is_set():
                raise StoreUnavailable(f"{target}: the backup was cancelled")

        try:
            self._copy(draft, stop_if_given_up)
            jobs = self._check(draft)
            stop_if_given_up()
            size = _publish(draft, target)
        except OSError as error:
            raise StoreRefused(f"{target}: the backup failed: {error.strerror or error}") from error
        finally:
            for leftover in _LEFTOVERS:
                with suppress(OSError):
                    os.unlink(draft + leftover)  # noqa: PTH108 - as above
        return Backup(target, size, jobs, self._database.clock.monotonic() - begun)

    def _copy(self, draft: str, between: Callable[[], None]) -> None:
        mode = os.stat(self._database.path).st_mode & 0o777  # noqa: PTH116 - as above
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))  # the same permissions as the database
        with closing(self._database.connect_to_look()) as source:
            source.run("BEGIN")
            retry_while_locked(lambda: source.run(self._sql["hold_still"]))
            with closing(connect(self._database.driver, draft)) as copy:
                copy.copy_from(source, between)
            source.run("ROLLBACK")  # fails if a writer has come to a file that this process cannot write

    def _check(self, draft: str) -> int:
        """Open the copy and look at all of it; how many jobs it holds."""
        with closing(connect(self._database.driver, draft)) as copy:
            copy.run(self._sql["as_one_file"])
            ((verdict,),) = copy.run(self._sql["check"])
            if verdict != "ok":
                raise StoreRefused(
                    f"{self._database.path}: its copy is damaged ({verdict}), so it may be damaged itself: "
                    "keep the backups that you have, and stop all writers"
                )
            ((jobs,),) = copy.run(self._sql["count_jobs"])
            return int(jobs)


def _new_file(path: str) -> str:
    """The full path of a file that can be made."""
    target = os.path.abspath(path)  # noqa: PTH100 - as above
    folder = os.path.dirname(target)  # noqa: PTH120 - as above
    if not path or path.endswith("/"):
        raise ArgumentError("path", f"must name a file, got {path!r}")
    if os.path.lexists(target):
        raise ArgumentError(
            "path", f"{target} exists already, and a backup never overwrites a file: choose another name"
        )
    if not os.path.isdir(folder):  # noqa: PTH112 - as above
        raise ArgumentError("path", f"{target} is in a folder that does not exist: create {folder} first")
    return target


def _publish(draft: str, target: str) -> int:
    """Flush the copy to the disk and give it its name; its size."""
    _flush(draft)
    if os.path.lexists(target):
        raise StoreRefused(f"{target}: another process has created this file meanwhile: choose another name")
    os.rename(draft, target)  # noqa: PTH104 - as above
    _flush(os.path.dirname(target))  # noqa: PTH120 - as above
    return os.stat(target).st_size  # noqa: PTH116 - as above


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
