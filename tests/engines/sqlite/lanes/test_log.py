"""The write-ahead log: bounded, grown ahead for writers, and never a danger to what was committed."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import apsw
import pytest
from tests.support.builders.jobs import a_job, enqueue

from perdure.engines.sqlite.lanes import wal as log
from perdure.engines.sqlite.lanes import writer
from perdure.engines.sqlite.store import SqliteStore
from perdure.storage.records import JobFilter, Page

MB = 1024 * 1024


async def until_idle(store: SqliteStore) -> None:
    """Wait until the writer has tidied up after the last commit."""
    lane = store._database._writer
    assert lane is not None
    async with asyncio.timeout(30):
        while lane._dirty:
            await asyncio.sleep(0.01)
        await store._database.write(lambda _: None)


async def test_a_busy_writer_grows_the_log_ahead_and_then_leaves_it(sqlite: SqliteStore) -> None:
    path = sqlite._database.log
    for _ in range(writer._COMMITS_OF_A_WRITER + log._AHEAD_BYTES // len(log._ZERO_BYTES) + 3):
        await enqueue(sqlite)
    assert log.is_grown(path)
    grown = log.size(path)
    for _ in range(50):
        await enqueue(sqlite)
    assert log.size(path) == grown


async def test_a_store_that_writes_little_leaves_the_log_small(sqlite: SqliteStore) -> None:
    await enqueue(sqlite)
    assert log.size(sqlite._database.log) < MB


async def test_what_was_committed_is_read_back_from_a_grown_log(sqlite: SqliteStore, tmp_path: Path) -> None:
    """As after a power cut: database and log are copied as they lie there, and opened by another process."""
    ids = [await enqueue(sqlite) for _ in range(100)]
    copy = tmp_path / "copy.db"
    shutil.copy(sqlite._database.path, copy)
    shutil.copy(sqlite._database.log, f"{copy}-wal")
    recovered = apsw.Connection(str(copy))
    assert recovered.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert sorted(job_id for (job_id,) in recovered.execute("SELECT id FROM perdure_job")) == sorted(ids)
    recovered.close()


async def test_an_interrupted_growth_is_harmless(path: str) -> None:
    """A log that is nothing but zeros, as it is if the power fails in between, is an empty log."""
    store = SqliteStore(path)
    await store.open()
    await store.migrate()
    job_id = await enqueue(store)
    await store.close()
    await asyncio.to_thread(Path(f"{path}-wal").write_bytes, bytes(3 * MB + 123))
    store = SqliteStore(path)
    await store.open()
    try:
        assert [view.id for view in await store.jobs(JobFilter(), Page())] == [job_id]
        await enqueue(store)
    finally:
        await store.close()
    assert log.size(f"{path}-wal") == 0


async def test_the_log_is_cut_back_after_a_long_reader(
    sqlite: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that holds its picture keeps the log from starting over; once it is gone, the log shrinks."""
    monkeypatch.setattr(log, "WAL_LIMIT_BYTES", 2 * MB)
    reader = apsw.Connection(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM perdure_job").fetchall()
    for _ in range(20):
        await sqlite.insert([a_job(args='"' + "x" * 2_000 + '"') for _ in range(200)])
    assert log.size(sqlite._database.log) > 4 * MB
    reader.close()
    await until_idle(sqlite)
    assert log.size(sqlite._database.log) <= 2 * MB


async def test_steady_writing_keeps_the_log_bounded(sqlite: SqliteStore) -> None:
    for _ in range(30):
        await sqlite.insert([a_job(args='"' + "x" * 4_000 + '"') for _ in range(500)])
    assert os.stat(sqlite._database.path).st_size > 2 * log._AHEAD_BYTES  # noqa: PTH116 - only looks
    assert log.size(sqlite._database.log) < log.WAL_LIMIT_BYTES


async def test_closing_leaves_one_file(sqlite: SqliteStore, tmp_path: Path) -> None:
    await enqueue(sqlite)
    await sqlite.close()
    assert [file.name for file in tmp_path.iterdir()] == ["perdure.db"]
