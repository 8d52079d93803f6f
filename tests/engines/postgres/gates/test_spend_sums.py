"""Sums beside transactions that are under way: no reader waits for them, and what they commit later is not lost."""

from __future__ import annotations

import asyncio

import psycopg
from tests.engines.postgres.conftest import Ask
from tests.support.builders.gate_requests import budget, claims_of, passed
from tests.support.builders.jobs import DAY

from perdure.engines.postgres.store import PostgresStore

ADD = "INSERT INTO spend (name, at, amount, job_id, is_estimate) VALUES ('ai', %s, %s, gen_random_uuid(), false)"
SETTLE = "UPDATE spend SET amount = 1, is_estimate = false"


async def test_c11_a_spend_that_is_committed_late_counts_from_then_on(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    """Its time lies in a minute that was summed long ago."""
    now = await pg_store.now()
    options = f"-c search_path={schema}"
    async with await psycopg.AsyncConnection.connect(postgres_url, options=options) as late:
        await late.execute(ADD, (now - DAY / 2, 2))
        ask(ADD, now - DAY / 2, 1)
        assert await pg_store.sum_spends(10) == 1
        assert await pg_store.spent("ai", now - DAY) == 1
        await late.commit()
    assert await pg_store.spent("ai", now - DAY) == 3
    assert await pg_store.sum_spends(10) == 1
    assert await pg_store.spent("ai", now - DAY) == 3


async def test_an_estimate_that_is_just_being_settled_is_summed_the_next_time(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    now, claims = await pg_store.now(), await claims_of(pg_store, 1)
    await passed(pg_store, claims, **budget(9, 5))
    ask("UPDATE spend SET at = at - interval '1 hour'")
    options = f"-c search_path={schema}"
    async with await psycopg.AsyncConnection.connect(postgres_url, options=options) as busy:
        await busy.execute(SETTLE)
        assert await asyncio.wait_for(pg_store.sum_spends(10), 5) == 0
        assert await pg_store.spent("ai", now - DAY) == 5
        await busy.commit()
    assert await pg_store.spent("ai", now - DAY) == 1
    assert await pg_store.sum_spends(10) == 1
    assert await pg_store.spent("ai", now - DAY) == 1
