"""Each library's connection in turn, beside an app on the same database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.support.callers import ON_POSTGRES, ON_SQLITE, Caller, Opening
from tests.support.databases.behind import with_option
from tests.support.databases.databases import SCHEMA

from perdure import App, Call, Handle, Job, JobView, Unique


class Setting(Struct):
    """An app with two jobs, a table `note` of the caller, and the way to the caller's own connection."""

    app: App
    greet: Job[[str], None]
    greet_once: Job[[str], None]
    table: str
    address: str
    opening: Opening

    def open(self) -> Any:
        """One more connection of the caller's."""
        return self.opening(self.address)

    async def enqueue(self, caller: Caller, name: str, **options: Any) -> Handle[None]:
        """Enqueue through the caller's connection, by the way that suits it."""
        prepared = self.greet.using(connection=caller.connection, **options)
        return prepared.enqueue_sync(name) if caller.blocking else await prepared.enqueue(name)

    async def enqueue_many(self, caller: Caller, calls: Iterable[Call[None]]) -> list[Handle[None]]:
        """The same, for many."""
        if caller.blocking:
            return self.app.enqueue_many_sync(calls, connection=caller.connection)
        return await self.app.enqueue_many(calls, connection=caller.connection)

    async def note(self, caller: Caller, text: str) -> None:
        """Write a row of the caller's own."""
        await caller.run(f"INSERT INTO {self.table} (text) VALUES ('{text}')")

    async def notes(self) -> list[str]:
        """What another connection sees of the caller's rows."""
        async with self.open() as other:
            rows = await other.run(f"SELECT text FROM {self.table} ORDER BY text")
            await other.rollback()
        return [text for (text,) in rows]

    async def job(self, handle: Handle[None]) -> JobView | None:
        """What another connection sees of a job."""
        return await (await self.app.store()).job(handle.id)

    async def jobs(self) -> int:
        """How many jobs another connection sees."""
        return sum(count.jobs for count in await (await self.app.store()).counts())


def greet(name: str) -> None:
    """Say hello."""


class Place(Struct):
    """A database with our tables: where the app finds it, where the caller does, and how the caller gets there."""

    url: str
    address: str
    table: str
    opening: Opening


@pytest.fixture(params=[*ON_POSTGRES, *ON_SQLITE])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Each library in turn."""
    name = request.param
    if name in ON_SQLITE:
        file = tmp_path / "shared.db"
        request.getfixturevalue("sqlite_files").put(file)
        driver = "apsw" if name == "apsw" else "sqlite3"
        yield Place(f"sqlite:///{file}?driver={driver}", str(file), "note", ON_SQLITE[name])
        return
    with request.getfixturevalue("postgres_database").lent() as address:
        yield Place(with_option(address, "schema", SCHEMA), address, f"{SCHEMA}.note", ON_POSTGRES[name])


@pytest.fixture
async def setting(place: Place) -> AsyncIterator[Setting]:
    """The same promises for every library."""
    async with App(place.url) as app:
        made = Setting(
            app,
            app.job(name="greet")(greet),
            app.job(name="greet_once", unique=Unique(by=("name",)))(greet),
            place.table,
            place.address,
            place.opening,
        )
        async with made.open() as caller:
            await caller.run(f"CREATE TABLE {place.table} (text text)")
            await caller.commit()
        yield made
