"""Every promise of `ctx.transaction()` is kept on PostgreSQL and on SQLite with either library."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.behind import query, with_option
from tests.support.effects import make_table

from perdure import App


@pytest.fixture(params=["apsw", "sqlite3", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database."""
    if request.param != "postgres":
        yield f"sqlite:///{tmp_path / 'effects.db'}?driver={request.param}"
        return
    schema = f"t_{uuid.uuid4().hex[:16]}"
    url = with_option(request.getfixturevalue("postgres_url"), "schema", schema)
    yield url
    query(url, f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    """An app on a database with a table for handlers to write to."""
    async with App(url) as app:
        make_table(url)
        yield app
