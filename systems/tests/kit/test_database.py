"""A system's own tables live beside its jobs, on both engines, and commit together with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest

from perdure import App, Context
from perdure.testing import Sandbox
from perdure_systems.kit.database import Database, Session
from perdure_systems.kit.rows import as_json

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Note(msgspec.Struct, frozen=True):
    id: str
    at: datetime
    done: bool
    words: list[str]
    said: str | None = None


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_note.sql").write_text(
        "-- A note; it may hold a semicolon.\n"
        "CREATE TABLE note (\n"
        "    id text PRIMARY KEY, at timestamptz NOT NULL, done boolean NOT NULL, words text NOT NULL\n"
        ");\n"
        "CREATE INDEX note_at ON note (at) WHERE done;\n"
    )
    return folder


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    app = App(engine_url)
    yield app
    await app.close()


@pytest.fixture
async def database(app: App, migrations: Path) -> AsyncIterator[Database]:
    database = Database(app, "test", migrations)
    yield database
    await database.close()


async def add(session: Session, name: str, at: datetime = NOON) -> None:
    await session.execute(
        "INSERT INTO note (id, at, done, words) VALUES (:id, :at, :done, :words)",
        {"id": name, "at": at, "done": True, "words": as_json(["a", "b:c"])},
    )


async def test_rows_come_back_as_records(database: Database) -> None:
    async with database.transaction() as session:
        await add(session, "one")

    sql = "SELECT *, '100% :x ::text' AS said FROM note WHERE at >= :at"
    assert await database.all(Note, sql, {"at": NOON}) == [Note("one", NOON, True, ["a", "b:c"], "100% :x ::text")]
    assert await database.one(Note, "SELECT * FROM note WHERE id = :id", {"id": "none"}) is None


class CamelNote(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    is_done: bool


async def test_a_record_may_have_other_names_in_json(database: Database) -> None:
    async with database.transaction() as session:
        await add(session, "one")
    found = await database.one(CamelNote, "SELECT id, done AS is_done FROM note")
    assert found == CamelNote("one", is_done=True)
    assert msgspec.json.encode(found) == b'{"id":"one","isDone":true}'


async def test_a_block_that_raises_leaves_nothing(database: Database) -> None:
    with pytest.raises(KeyError):  # noqa: PT012 - the block is the point
        async with database.transaction() as session:
            await add(session, "one")
            raise KeyError
    assert await database.all(Note, "SELECT * FROM note") == []


async def test_a_caller_that_is_cancelled_while_it_waits_leaves_no_lock(database: Database) -> None:
    await database.migrate()
    async with database.transaction() as session:
        await add(session, "one")
        waiting = asyncio.create_task(_add_one(database, "two"))
        await asyncio.sleep(0.05)  # on SQLite it waits for the lock now
        waiting.cancel()
    await asyncio.wait({waiting})
    async with asyncio.timeout(10), database.transaction() as session:
        await add(session, "three")
    assert "three" in {note.id for note in await database.all(Note, "SELECT * FROM note")}


async def test_many_writers_at_once_do_not_lock_each_other_out(database: Database) -> None:
    """More of them than any pool has threads: the one that holds the lock must still find one to commit in."""
    await database.migrate()
    async with asyncio.timeout(20):
        await asyncio.gather(*(_add_one(database, f"note {number}") for number in range(50)))
    assert len(await database.all(Note, "SELECT * FROM note")) == 50


async def _add_one(database: Database, name: str) -> None:
    async with database.transaction() as session:
        await add(session, name)


async def test_readers_do_not_wait_for_writers_however_many_wait_for_the_lock(database: Database) -> None:
    await database.migrate()
    async with database.transaction() as session:
        await add(session, "one")
        writers = [asyncio.create_task(_add_one(database, f"note {number}")) for number in range(100)]
        await asyncio.sleep(0.05)  # on SQLite they have taken every thread in which a writer waits
        if isinstance(session.connection, apsw.Connection):  # PostgreSQL's pool has places for both together
            assert await asyncio.wait_for(database.all(Note, "SELECT * FROM note"), 5) == []
    await asyncio.gather(*writers)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_however_many_callers_there_are_files_do_not_run_out(database: Database) -> None:
    """Far more readers and writers than connections, some of them cancelled: all others are served, few stay open."""
    await database.migrate()
    before = open_files()
    tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(_add_one(database, f"note {number}")) for number in range(300)
    ]
    tasks += [asyncio.create_task(database.one(Note, "SELECT * FROM note")) for _ in range(300)]
    await asyncio.sleep(0.02)
    most = open_files()
    for task in tasks[::7]:
        task.cancel()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert {type(answer) for answer in answers if isinstance(answer, BaseException)} <= {asyncio.CancelledError}
    written = len(await database.all(Note, "SELECT * FROM note"))
    assert 300 - len(tasks[:300:7]) <= written <= 300
    assert most - before <= 3 * 2 * 64 + 20
    assert open_files() - before <= 2 * 64 + 3 * 8 + 20  # SQLite keeps a closed file for the next connection


async def test_closing_while_in_use_loses_nothing(database: Database) -> None:
    """A block that runs goes on and commits; its connection is closed behind it, and the next use opens anew."""
    async with database.transaction() as session:
        await add(session, "one")
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        await add(session, "two")
    await closing
    with pytest.raises((apsw.ConnectionClosedError, psycopg.OperationalError)):
        await session.execute("SELECT 1")
    assert {note.id for note in await database.all(Note, "SELECT * FROM note")} == {"one", "two"}


async def test_migrations_run_twice_and_new_ones_are_added(database: Database, migrations: Path) -> None:
    assert await database.migrate() == ["test/0001_note"]
    await database.close()
    (migrations / "0002_said.sql").write_text("ALTER TABLE note ADD COLUMN said text;")
    assert await database.migrate() == ["test/0002_said"]
    await database.close()
    assert await database.migrate() == []


async def test_a_row_and_its_job_commit_together_or_not_at_all(app: App, database: Database) -> None:
    @app.job
    async def greet(name: str) -> None: ...

    async with app:
        async with database.transaction() as session:
            await add(session, "kept")
            await greet.using(connection=session.connection).enqueue("kept")
        with pytest.raises(KeyError):  # noqa: PT012 - as above
            async with database.transaction() as session:
                await add(session, "lost")
                await greet.using(connection=session.connection).enqueue("lost")
                raise KeyError
        jobs = (await (await app.desk("test")).jobs()).jobs
    assert [note.id for note in await database.all(Note, "SELECT * FROM note")] == ["kept"]
    assert [job.arguments for job in jobs] == [{"name": "kept"}]


async def test_a_handler_writes_with_its_acknowledgement(app: App, database: Database, engine_url: str) -> None:
    @app.job
    async def write(ctx: Context, name: str) -> None:
        async with ctx.transaction() as connection:
            await add(Session(connection), name)

    await database.migrate()
    async with Sandbox(app, url=engine_url) as box:
        await write.enqueue("one")
        assert (await box.drain()).succeeded == 1
    assert [note.id for note in await database.all(Note, "SELECT * FROM note")] == ["one"]
