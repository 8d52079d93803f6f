"""Rings that travel with the job that they are for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from tests.engines.postgres.conftest import eventually
from tests.support.builders.jobs import a_job

from perdure.engines.postgres.store import PostgresStore
from perdure.errors import ArgumentError


@pytest.fixture
async def heard(postgres_url: str, pg_store: PostgresStore) -> AsyncIterator[list[str]]:
    """What another process would hear: the queues, in order."""
    queues = list[str]()
    connection = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)
    await connection.execute(f'LISTEN "{pg_store.naming.channel}"')

    async def listen() -> None:
        async for notice in connection.notifies():
            queues.append(notice.payload)

    listening = asyncio.create_task(listen())
    yield queues
    listening.cancel()
    await asyncio.wait([listening])
    await connection.close()


async def until(heard: list[str], number: int) -> None:
    async def look() -> bool:
        return len(heard) >= number

    await eventually(look)


async def quiet(store: PostgresStore) -> None:
    """Wait until the bell rests, and has nothing more to tell."""

    async def look() -> bool:
        return store._signals._ringing is None

    await eventually(look)


async def test_a_job_rings_for_itself_and_who_rings_for_it_is_not_heard_twice(
    pg_store: PostgresStore, heard: list[str]
) -> None:
    await pg_store.insert([a_job(queue="mail")])
    pg_store.ring(["mail"])
    await quiet(pg_store)
    pg_store.ring(["end"])
    await until(heard, 2)
    assert sorted(heard) == ["end", "mail"]


async def test_jobs_that_come_while_the_bell_rests_are_reported_together(
    pg_store: PostgresStore, heard: list[str]
) -> None:
    for _ in range(50):
        await pg_store.insert([a_job(queue="mail")])
        pg_store.ring(["mail"])
    await quiet(pg_store)
    pg_store.ring(["end"])
    await until(heard, 2)
    await quiet(pg_store)
    assert 1 <= heard.count("mail") < 50


async def test_a_ring_for_another_queue_is_heard_as_well(pg_store: PostgresStore, heard: list[str]) -> None:
    await pg_store.insert([a_job(queue="mail")])
    pg_store.ring(["mail", "night"])
    await until(heard, 2)
    assert sorted(heard) == ["mail", "night"]


async def test_a_job_without_a_ring_does_not_silence_the_next_ring(pg_store: PostgresStore, heard: list[str]) -> None:
    await pg_store.insert([a_job(queue="mail")])
    await asyncio.sleep(0)
    await quiet(pg_store)
    pg_store.ring(["mail"])
    await until(heard, 2)
    assert heard == ["mail", "mail"]


async def test_a_job_that_is_refused_does_not_silence_the_next_ring(pg_store: PostgresStore, heard: list[str]) -> None:
    with pytest.raises(ArgumentError, match="NUL"):
        await pg_store.insert([a_job(queue="mail", args='{"a":"\0"}')])
    pg_store.ring(["mail"])
    await until(heard, 1)
    assert heard == ["mail"]
