"""Backups: hot, checked by opening the copy, and named only when they are good (C14)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw
import pytest
from tests.support.builders.jobs import HOUR, a_job, claim_one, employ, enqueue
from tests.support.waiting import text_of, until

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.engines.sqlite.database.drivers import DRIVERS, Connection, connect
from perdure.engines.sqlite.operate import backup
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import ArgumentError, StoreRefused, StoreUnavailable
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

JOBS = 3_000
_FILL = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
    "INSERT INTO t SELECT randomblob(4000) FROM n"
)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "copy.db"


@pytest.fixture(params=DRIVERS)
async def either(request: pytest.FixtureRequest, path: str, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    """A store through either library."""
    store = SqliteStore(path, driver=request.param, clock=clock)
    await store.open()
    await store.migrate()
    yield store
    await store.close()


class Producer(threading.Thread):
    """Enqueues through a store of its own, as fast as it can, until it is told to stop."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._over = threading.Event()
        self.committed: list[JobId] = []

    def run(self) -> None:
        asyncio.run(self._produce())

    async def _produce(self) -> None:
        await self._store.open()
        try:
            while not self._over.is_set():
                receipts = await self._store.insert([a_job() for _ in range(20)])
                self.committed += [receipt.job_id for receipt in receipts]
        finally:
            await self._store.close()

    def stop(self) -> None:
        self._over.set()
        self.join(30)
        assert not self.is_alive()


async def test_c14_a_backup_while_writes_go_on_is_sound_and_complete(either: SqliteStore, target: Path) -> None:
    """It holds every job that was committed before it began, whole batches of those that came later, and runs."""
    await either.insert([a_job() for _ in range(JOBS)])
    producer = Producer(either.sibling())
    producer.start()
    try:
        await until(lambda: len(producer.committed) > 200)
        before = set(producer.committed)
        made = await either.back_up(str(target))
        seen = len(producer.committed)
        await until(lambda: len(producer.committed) > seen)
    finally:
        producer.stop()
    assert len(before) + JOBS <= made.jobs <= len(producer.committed) + JOBS
    assert made.jobs % 20 == 0
    assert (made.path, made.bytes) == (str(target), stat_of(target).st_size)
    copy = SqliteStore(str(target), driver=either._settings[1])
    await copy.open()
    try:
        await copy.check_schema()
        held = {view.id for view in await copy.jobs(JobFilter(), Page(limit=made.jobs + 1))}
        assert len(held) == made.jobs
        assert before <= held
        await claim_one(copy, await employ(copy))
    finally:
        await copy.close()


async def test_c14_writers_do_not_wait_for_a_backup(
    sqlite: SqliteStore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of copying, a job is stored; the copy does not hold it."""
    await enqueue(sqlite)
    begun, go_on = threading.Event(), threading.Event()

    def slow_connect(driver: str, path: str) -> Connection:
        begun.set()
        go_on.wait(30)
        return connect(driver, path)

    monkeypatch.setattr(backup, "connect", slow_connect)
    backing_up = asyncio.create_task(sqlite.back_up(str(target)))
    await until(begun.is_set)
    await asyncio.wait_for(sqlite.insert([a_job() for _ in range(10)]), 10)
    go_on.set()
    assert (await backing_up).jobs == 1


async def test_c14_a_backup_is_one_file_as_private_as_the_database(
    either: SqliteStore, path: str, target: Path
) -> None:
    make_private(path)
    await either.back_up(str(target))
    assert [found.name for found in target.parent.iterdir()] == ["copy.db"]
    assert stat_of(target).st_mode & 0o777 == 0o600


async def test_an_existing_file_is_never_overwritten(sqlite: SqliteStore, path: str, tmp_path: Path) -> None:
    target = a_file(tmp_path / "copy.db", "precious")
    for taken in (str(target), path, str(target.parent)):
        with pytest.raises(ArgumentError, match=r"path .* exists already") as error:
            await sqlite.back_up(taken)
        assert error.value.field == "path"
    assert text_of(target) == "precious"


@pytest.mark.parametrize("bad", ["", "folder/"])
async def test_a_path_that_names_no_file_is_refused(sqlite: SqliteStore, bad: str) -> None:
    with pytest.raises(ArgumentError, match="path must name a file"):
        await sqlite.back_up(bad)


async def test_a_missing_folder_is_named(sqlite: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"path .*nowhere/copy.db is in a folder that does not exist: create .*nowhere"
    ):
        await sqlite.back_up(str(tmp_path / "nowhere" / "copy.db"))


@pytest.mark.parametrize("hidden", [False, True])
async def test_a_damaged_database_gives_no_backup(path: str, target: Path, hidden: bool) -> None:
    """Whether the damage is plain to see, or only a look at every row shows it."""
    store = SqliteStore(path)
    await store.open()
    await store.migrate()
    await store.insert([a_job(delay=HOUR) for _ in range(500)])
    await store.close()
    (lose_rows_of_an_index if hidden else crush_a_page)(path)
    await store.open()
    try:
        with pytest.raises(StoreRefused, match="damaged"):
            await store.back_up(str(target))
    finally:
        await store.close()
    assert list(target.parent.iterdir()) == []


async def test_a_backup_that_fails_leaves_nothing_behind(
    either: SqliteStore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue(either)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StoreRefused, match=r"copy.db: the backup failed: No space left on device"):
        await either.back_up(str(target))
    assert list(target.parent.iterdir()) == []


async def test_a_backup_that_is_given_up_leaves_nothing_behind(
    either: SqliteStore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await either.insert([a_job() for _ in range(JOBS)])
    given_up, ended = threading.Event(), threading.Event()
    copy = backup.BackupPart._copy

    def slow_copy(part: backup.BackupPart, draft: str, between: Callable[[], None]) -> None:
        given_up.wait(30)
        try:
            copy(part, draft, between)
        finally:
            ended.set()

    monkeypatch.setattr(backup.BackupPart, "_copy", slow_copy)
    task = asyncio.create_task(either.back_up(str(target)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    given_up.set()
    await until(ended.is_set)
    await until(lambda: not list(target.parent.iterdir()))


def test_a_backup_stops_between_two_pieces(path: str, tmp_path: Path) -> None:
    """Through either library, what is raised between two pieces ends the copying."""
    for driver in DRIVERS:
        source = connect(driver, f"{path}-{driver}")
        source.run("CREATE TABLE t (x)")
        source.run(_FILL)
        copy = connect(driver, str(tmp_path / f"copy-{driver}"))
        pieces: list[int] = []

        def stop(pieces: list[int] = pieces) -> None:
            pieces.append(1)
            raise StoreUnavailable("enough")

        with pytest.raises(StoreUnavailable, match="enough"):
            copy.copy_from(source, stop)
        assert len(pieces) == 1
        copy.close()
        source.close()


def stat_of(file: Path) -> os.stat_result:
    return file.stat()


def a_file(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def make_private(path: str) -> None:
    Path(path).chmod(0o600)


def lose_rows_of_an_index(path: str) -> None:
    """Say of an index that it holds jobs that it does not hold."""
    link = apsw.Connection(path)
    link.execute("PRAGMA writable_schema = ON")
    link.execute(
        """UPDATE sqlite_schema SET sql = 'CREATE INDEX perdure_parked_return ON perdure_parked (queue, due_at)'
        WHERE name = 'perdure_parked_return'"""
    )
    assert link.changes() == 1
    link.close()


def crush_a_page(path: str) -> None:
    """Write rubbish over the pages of the jobs."""
    link = apsw.Connection(path)
    root = int(str(link.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'perdure_job'").get))
    size = int(str(link.execute("PRAGMA page_size").get))
    link.close()
    with Path(path).open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)
