"""Every promise of `ctx.transaction()` is kept on PostgreSQL and on SQLite with either library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.databases.behind import with_option
from tests.support.databases.databases import SCHEMA
from tests.support.programs.effects import make_table

from perdure import App


@pytest.fixture(params=["apsw", "sqlite3", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with our tables and nothing in them."""
    if request.param != "postgres":
        file = tmp_path / "effects.db"
        request.getfixturevalue("sqlite_files").put(file)
        yield f"sqlite:///{file}?driver={request.param}"
        return
    with request.getfixturevalue("postgres_database").lent() as url:
        yield with_option(url, "schema", SCHEMA)


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    """An app on a database with a table for handlers to write to."""
    async with App(url) as app:
        make_table(url)
        yield app
