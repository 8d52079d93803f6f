"""The schema: the sum of its migrations, applied under the write lock, and looked at without it."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path

import apsw
import pytest
from tests.support.jobs import a_job, enqueue

from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import SchemaError
from perdure.storage.records import JobFilter, Page

SCHEMA = files("perdure.engines.sqlite").joinpath("sql", "schema.sql")


async def test_schema_is_the_sum_of_its_migrations(sqlite: SqliteStore) -> None:
    """`sql/schema.sql` is what a newcomer reads. If this fails after a new migration, write the dump there."""
    assert await sqlite.schema_dump() == SCHEMA.read_text(encoding="utf-8")


async def test_migrate_of_a_current_database_takes_no_write_lock(sqlite: SqliteStore, path: str) -> None:
    writer = apsw.Connection(path)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert await asyncio.wait_for(sqlite.migrate(), 5) == []
        await asyncio.wait_for(sqlite.check_schema(), 5)
    finally:
        writer.close()


async def test_a_failed_migration_leaves_nothing_behind(path: str) -> None:
    """The file holds a table of that name already: the whole migration is undone, its history too."""
    stranger = apsw.Connection(path)
    stranger.execute("CREATE TABLE perdure_worker (theirs)")
    stranger.close()
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(Exception, match="perdure_worker already exists"):
            await store.migrate()
        with pytest.raises(SchemaError, match="perdure migrate"):
            await store.check_schema()
    finally:
        await store.close()
    looker = apsw.Connection(path)
    assert looker.execute("SELECT name FROM sqlite_schema").fetchall() == [("perdure_worker",)]
    looker.close()


async def test_a_database_without_our_tables_says_what_to_do(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(SchemaError, match="run `perdure migrate`"):
            await store.insert([a_job()])
    finally:
        await store.close()


async def test_prefixes_keep_apps_in_one_file_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    ours, theirs = SqliteStore(path, prefix="ours_"), SqliteStore(path, prefix="theirs_")
    for store in (ours, theirs):
        await store.open()
        assert await store.migrate() == ["0001_first", "0002_time", "0003_flows", "0004_gates", "0005_fairness"]
    try:
        job_id = await enqueue(ours)
        assert [view.id for view in await ours.jobs(JobFilter(), Page())] == [job_id]
        assert await theirs.jobs(JobFilter(), Page()) == []
        assert "ours_" not in await theirs.schema_dump()
    finally:
        await ours.close()
        await theirs.close()
