"""What can be wrong with an SQLite file and the library that writes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import from_micros, span
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import library_version, library_warning
from perdure.engines.sqlite.database.files import file_system_of
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes.wal import WAL_LIMIT_BYTES
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.storage.operate.diagnosis import (
    Finding,
    ParkedAhead,
    PausedJobs,
    Waiting,
    fine,
    problem,
    warning,
)

_MB: Final = 1024 * 1024
LITTLE_ROOM_BYTES: Final = 1024 * _MB
NO_ROOM_BYTES: Final = 100 * _MB
_FULL_SYNCHRONOUS: Final = 2
_LEVELS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")


class DiagnosisPart:
    """Examines the file from this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/diagnosis.sql")
        self._audit = Audit(database)

    async def diagnose(self) -> list[Finding]:
        """Look at the library, the durability settings, the file system, the log beside the file, and the disk."""
        path = self._database.path
        return [
            judge_library(self._database.driver, library_version(self._database.driver)),
            judge_access(self._database.why_read_only) or await self._durability(),
            judge_place(path, *file_system_of(path)),
            judge_log(_size(self._database.log)),
            judge_room(shutil.disk_usage(os.path.dirname(path)).free),  # noqa: PTH120 - the path is text
        ]

    async def waiting(self) -> list[Waiting]:
        """For each queue with ready jobs, the longest wait."""

        def look(transaction: Transaction) -> list[Waiting]:
            return [Waiting(queue, from_micros(since)) for queue, since in transaction.run(self._sql["waiting"])]

        return await self._database.read(look)

    async def paused(self, reasons: Collection[str], cap: int) -> list[PausedJobs]:
        """Jobs that are held for one of these reasons, by reason and kind."""
        params = {"reasons": to_document(sorted(reasons)), "cap": cap}

        def look(transaction: Transaction) -> list[PausedJobs]:
            rows = transaction.run(self._sql["paused"], params)
            return [
                PausedJobs(reason, kind, note, jobs, from_micros(since)) for reason, kind, note, jobs, since in rows
            ]

        return await self._database.read(look)

    async def parked_ahead(self) -> ParkedAhead | None:
        """Jobs that wait too long, because a clock that was ahead parked them."""

        def look(transaction: Transaction) -> ParkedAhead | None:
            ahead = transaction.now + span(CLOCK_SLACK)
            ((jobs, latest),) = transaction.run(self._sql["parked_ahead"], {"ahead": ahead})
            return ParkedAhead(jobs, timedelta(microseconds=latest - transaction.now)) if jobs else None

        return await self._database.read(look)

    async def redate_parked(self, by: By, limit: int) -> list[JobId]:
        """Give such jobs their intended wait from now on."""

        def work(transaction: Transaction) -> list[JobId]:
            now = transaction.now
            ahead = now + span(CLOCK_SLACK)
            ((document,),) = transaction.run(self._sql["choose_ahead"], {"ahead": ahead, "limit": limit})
            ids = from_document(document)
            if ids:
                self._audit.about_redate(transaction, ids, by)
                chosen = {"ids": to_document(ids), "now": now}
                transaction.change(self._sql["redate_steps"], chosen | {"ahead": ahead})
                transaction.change(self._sql["redate_parked"], chosen)
            return ids

        return await self._database.write(work)

    async def _durability(self) -> Finding:
        def look(transaction: Transaction) -> tuple[str, int]:
            ((mode,),) = transaction.run(self._sql["journal_mode"])
            ((level,),) = transaction.run(self._sql["synchronous"])
            return mode, level

        return judge_durability(*await self._database.read(look))


def judge_library(driver: str, version: tuple[int, int, int]) -> Finding:
    """Whether this SQLite is free of the bug that can corrupt a database."""
    if complaint := library_warning(driver, version):
        seen, _, advice = complaint.partition(": ")
        return warning("library", seen, advice)  # no problem: the guide asks for this driver where a file is shared
    return fine("library", f"SQLite {'.'.join(map(str, version))} through {driver}")


def judge_access(why_read_only: str | None) -> Finding | None:
    """That this process can only read; None: it can write."""
    if why_read_only is None:
        return None
    return warning("access", f"read-only: {why_read_only}", "run commands and workers where the file can be written")


def judge_durability(mode: str, level: int) -> Finding:
    """Whether a commit survives a power cut."""
    seen = f"journal_mode={mode}, synchronous={_LEVELS[level] if level < len(_LEVELS) else level}"
    if mode == "wal" and level >= _FULL_SYNCHRONOUS:
        return fine("durability", seen)
    return problem("durability", seen, "a power cut may lose jobs: let nothing else change these settings of the file")


def judge_place(path: str, mounted: str, kind: str) -> Finding:
    """Whether the file lies where it outlives a restart."""
    if kind in {"tmpfs", "ramfs"}:
        return warning("file system", f"{path} is on {kind} ({mounted})", "a restart loses every job: use a real disk")
    return fine("file system", f"{kind or 'unknown kind'}: {path}")


def judge_log(size: int) -> Finding:
    """Whether the write-ahead log is kept short."""
    seen = f"{size / _MB:.1f} MB"
    if size <= 2 * WAL_LIMIT_BYTES:
        return fine("write-ahead log", seen)
    return warning(
        "write-ahead log", seen, "something reads for very long, a backup or a forgotten transaction: end it"
    )


def judge_room(free: int) -> Finding:
    """Whether jobs can still be stored."""
    seen = f"{free / _MB:,.0f} MB free"
    if free < NO_ROOM_BYTES:
        return problem("disk", seen, "make room now: a full disk refuses new jobs and results")
    return warning("disk", seen, "make room, or purge old jobs") if free < LITTLE_ROOM_BYTES else fine("disk", seen)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0
