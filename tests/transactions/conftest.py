"""Each library's connection in turn, beside an app on the same database."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.support.behind import query, with_option
from tests.support.callers import ON_POSTGRES, ON_SQLITE, Caller, Opening

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


@pytest.fixture(params=[*ON_POSTGRES, *ON_SQLITE])
async def setting(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Setting]:
    """The same promises for every library."""
    name = request.param
    if name in ON_SQLITE:
        address, table = str(tmp_path / "shared.db"), "note"
        url = f"sqlite:///{address}?driver={'apsw' if name == 'apsw' else 'sqlite3'}"
        opening = ON_SQLITE[name]
    else:
        address, schema = request.getfixturevalue("postgres_url"), f"t_{uuid.uuid4().hex[:16]}"
        url, table, opening = with_option(address, "schema", schema), f"{schema}.note", ON_POSTGRES[name]
    async with App(url) as app:
        made = Setting(
            app,
            app.job(name="greet")(greet),
            app.job(name="greet_once", unique=Unique(by=("name",)))(greet),
            table,
            address,
            opening,
        )
        async with made.open() as caller:
            await caller.run(f"CREATE TABLE {table} (text text)")
            await caller.commit()
        yield made
    if name in ON_POSTGRES:
        query(url, f"DROP SCHEMA {schema} CASCADE")
