"""Loans under fire: what is lent and what goes back at the same time never wait for each other in a circle."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask, until_waiting
from tests.support.builders.borrowing import lend
from tests.support.builders.jobs import employ

from perdure.domain.gate import Loan
from perdure.domain.jobs.ids import WorkerId
from perdure.engines.postgres.store import PostgresStore
from perdure.policy.limits.lending import SLOTS

BACKWARDS = [Loan("b", SLOTS, 1), Loan("a", SLOTS, 1)]


@pytest.mark.parametrize("way", ["lent", "back", "left"])
async def test_every_writer_locks_loans_in_the_order_of_their_keys(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask, way: str
) -> None:
    """A transaction that waits for the first of them holds none of the others."""

    async def write(borrower: WorkerId) -> None:
        if way == "lent":
            await lend(pg_store, borrower, *BACKWARDS)
        else:
            await pg_store.return_loans(borrower, **{"back": (), way: BACKWARDS})

    borrower = await employ(pg_store)
    await lend(pg_store, borrower, *BACKWARDS)
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as other:
        other.execute("SELECT FROM gate_loan WHERE key = 'a' FOR UPDATE")
        writing = asyncio.create_task(write(borrower))
        await until_waiting(ask, schema)
        assert ask("SELECT key FROM gate_loan FOR UPDATE SKIP LOCKED") == [("b",)]
        other.rollback()
        await writing
