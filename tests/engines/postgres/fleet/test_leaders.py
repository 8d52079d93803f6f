"""Leadership on PostgreSQL, where the time of a statement may be older than the row that it finds."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.engines.postgres.conftest import Ask, until_waiting

from perdure.engines.postgres.store import PostgresStore

LEASE = timedelta(seconds=30)


async def test_a_follower_that_waits_for_the_row_does_not_take_a_lead_renewed_meanwhile(
    pg_store: PostgresStore, ask: Ask, schema: str
) -> None:
    """The holder renews it after the follower has asked: that is no lease from before the clock was put back."""
    assert (await pg_store.lead("reports", "anna", LEASE)).is_ours
    ask("BEGIN")
    ask("SELECT FROM leader WHERE name = 'reports' FOR UPDATE")
    asked = asyncio.create_task(pg_store.lead("reports", "ben", LEASE))
    try:
        await until_waiting(ask, schema)
        ask("UPDATE leader SET until = clock_timestamp() + lease WHERE name = 'reports'")
    finally:
        ask("COMMIT")
    lead = await asked
    assert (lead.is_ours, lead.holder, lead.term) == (False, "anna", 1)
