"""A server that is too old is refused by name when the database is opened."""

from __future__ import annotations

import psycopg
import pytest

from perdure.engines.postgres.store import PostgresStore
from perdure.errors import StoreRefused


@pytest.mark.parametrize(("number", "version"), [(130_012, "13.12"), (90_624, "9.6")])
async def test_an_old_server_is_refused_when_a_store_opens(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, number: int, version: str
) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", number)
    store = PostgresStore(postgres_url)
    with pytest.raises(StoreRefused, match=f"PostgreSQL {version}, and perdure needs PostgreSQL 14 or later: upgrade"):
        await store.open()
    await store.close()


@pytest.mark.parametrize("number", [140_000, 180_004, 990_000])
async def test_the_oldest_that_will_do_and_a_newer_one_are_fine(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", number)
    store = PostgresStore(postgres_url)
    await store.open()
    assert await store.now()
    await store.close()
