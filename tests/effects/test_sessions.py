"""Transactions of handlers take at most so many sessions of a PostgreSQL server; others wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.support.databases.behind import query, with_option
from tests.support.databases.databases import SCHEMA, PostgresDatabase
from tests.support.programs.effects import at_work, insertion, make_table, write, written

from perdure import App, Context, WorkerSettings
from perdure.app.connect import store_for
from perdure.engines.postgres.claims.effects import SESSIONS_AT_ONCE

OWN_SESSIONS = 5  # of the worker itself, which may be in a transaction at that moment
SESSIONS_NOW = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in tr%'"


@pytest.fixture
def server_url(postgres_database: PostgresDatabase) -> Iterator[str]:
    """A database of PostgreSQL with our tables."""
    with postgres_database.lent() as url:
        yield with_option(url, "schema", SCHEMA)


async def test_another_one_waits_until_a_session_is_over(server_url: str) -> None:
    """However it ends: by rolling back, or broken off while its handler still has it."""
    store = store_for(server_url)
    await store.open()
    try:
        held = [await store.begin_effects() for _ in range(SESSIONS_AT_ONCE)]
        for forced in (False, True):
            waiting = asyncio.create_task(store.begin_effects())
            done, _ = await asyncio.wait({waiting}, timeout=0.2)
            assert not done
            await held.pop().undo(forced=forced)
            held.append(await asyncio.wait_for(waiting, 20))
        cancelled = asyncio.create_task(store.begin_effects())
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        for one in held:
            await one.undo()
            await one.undo()  # what is over is over: it gives no second turn
        again = [await asyncio.wait_for(store.begin_effects(), 20) for _ in range(SESSIONS_AT_ONCE)]
        for one in again:
            await one.undo()
    finally:
        await store.close()


async def test_a_hundred_attempts_at_once_share_them(server_url: str) -> None:
    most = 0
    async with App(server_url) as app:
        make_table(server_url)

        @app.job
        async def insert(ctx: Context, number: int) -> None:
            nonlocal most
            async with ctx.transaction() as connection:
                await write(connection, insertion(server_url, f"row {number}"))
                if number % 10 == 0:
                    [(now,)] = await asyncio.to_thread(query, server_url, SESSIONS_NOW)
                    most = max(most, now)

        handles = await app.enqueue_many(insert.call(number) for number in range(100))
        async with at_work(app, WorkerSettings(concurrency=100)):
            for handle in handles:
                await handle.result("60s")
            assert [(await handle.view()).failures for handle in handles] == [0] * 100
    assert len(written(server_url)) == 100
    assert 1 <= most <= SESSIONS_AT_ONCE + OWN_SESSIONS
