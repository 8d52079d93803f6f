"""The short way for single writes: taken when it is quick, left at once when it is not, and never a second truth."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from shutil import move
from types import SimpleNamespace

import apsw
import pytest
from tests.support.builders.jobs import a_job, a_key, enqueue

from perdure.domain.jobs.job import Intake, OnConflict
from perdure.engines.sqlite.lanes import single_writes, writer
from perdure.engines.sqlite.lanes.single_writes import SingleWrites
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import DuplicateJobError, StoreUnavailable
from perdure.storage.records import JobFilter, Page


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, the disk counts as quick."""
    monkeypatch.setattr(single_writes, "_SLOW_WRITE_SECONDS", 30.0)


def way(store: SqliteStore) -> SingleWrites:
    way = store._database._single_writes
    assert way is not None
    return way


async def open_way(store: SqliteStore) -> SingleWrites:
    """Enqueue until the short way is open."""
    async with asyncio.timeout(30):
        while not way(store)._commits:
            await enqueue(store)
            await asyncio.sleep(0)
    return way(store)


async def test_a_few_enqueues_never_open_it(sqlite: SqliteStore) -> None:
    for _ in range(10):
        await enqueue(sqlite)
    assert way(sqlite)._connection is None


async def test_single_enqueues_take_it_and_every_connection_sees_them(sqlite: SqliteStore, path: str) -> None:
    short = await open_way(sqlite)
    before = short._commits
    ids = [await enqueue(sqlite) for _ in range(5)]
    assert short._commits == before + 5
    other = apsw.Connection(path)
    stored = {job_id for (job_id,) in other.execute("SELECT job_id FROM perdure_ready")}
    other.close()
    assert set(ids) <= stored


async def test_a_lock_held_elsewhere_sends_it_the_usual_way(sqlite: SqliteStore, path: str) -> None:
    short = await open_way(sqlite)
    before = short._commits
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(sqlite.insert([a_job()]))
    await asyncio.sleep(0)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    [receipt] = await asyncio.wait_for(waiting, 30)
    assert (receipt.intake, short._commits) == (Intake.NEW, before)


async def test_an_error_on_it_leaves_nothing_behind(sqlite: SqliteStore) -> None:
    await open_way(sqlite)
    await enqueue(sqlite, unique=a_key())
    stored = len(await sqlite.jobs(JobFilter(), Page(limit=500)))
    with pytest.raises(DuplicateJobError):
        await sqlite.insert([a_job(unique=a_key(on_conflict=OnConflict.REJECT))])
    assert len(await sqlite.jobs(JobFilter(), Page(limit=500))) == stored
    assert await enqueue(sqlite)


async def test_a_slow_disk_closes_it_for_a_while(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    short = await open_way(sqlite)
    monkeypatch.setattr(single_writes, "_SLOW_WRITE_SECONDS", 0.0)
    await enqueue(sqlite)
    closed = short._commits
    await enqueue(sqlite)
    assert short._commits == closed
    short._closed_until = 0.0
    await enqueue(sqlite)
    assert short._commits == closed + 1


async def test_the_log_is_still_copied_back(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_writes, "_COMMITS_PER_CHECKPOINT", 3)
    await open_way(sqlite)
    copied: list[str] = []
    monkeypatch.setattr(writer, "_checkpoint", lambda _, mode: copied.append(mode))
    for _ in range(9):
        await enqueue(sqlite)
    for _ in range(2):  # the second begins when the first is wholly done
        await sqlite._database.write(lambda _: None)
    assert "PASSIVE" in copied


async def test_a_file_that_was_moved_is_noticed_within_a_millisecond_and_stays_refused(
    sqlite: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = await open_way(sqlite)
    before = short._commits
    await enqueue(sqlite)
    later = time.monotonic() + 1.0
    monkeypatch.setattr(single_writes, "time", SimpleNamespace(monotonic=lambda: later))
    move(path, f"{path}.away")
    for _ in range(2):  # the second comes in the same instant, and a look that failed does not count as one
        with pytest.raises(StoreUnavailable, match="moved, deleted or replaced"):
            await sqlite.insert([a_job()])
    move(f"{path}.away", path)
    assert await enqueue(sqlite)
    assert short._commits == before + 2


async def test_an_enqueue_while_the_store_closes_does_not_open_it_again(path: str) -> None:
    """A connection that is left open is one that the book knows nothing of: another library would be let in."""
    store = SqliteStore(path)
    await store.open()
    await store.migrate()
    await open_way(store)
    go_on = threading.Event()
    reading = store._database.read(lambda _: go_on.wait(30))
    closing = asyncio.create_task(store.close())
    for _ in range(50):
        await enqueue(store)
        await asyncio.sleep(0)
    if opening := way(store)._opening:
        await asyncio.wait([opening])
    go_on.set()
    assert await reading
    await closing
    assert opened_by_this_process(path) == []


async def test_a_store_closes_although_asyncio_has_no_thread_to_open_it(path: str, no_free_thread: None) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.migrate()
    await open_way(store)
    await asyncio.wait_for(store.close(), 30)


def opened_by_this_process(path: str) -> list[str]:
    found = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [target for target in found if target.startswith(path)]
