"""The event log of PostgreSQL: transactions that commit late, and those that run for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.support.builders.jobs import DAY, job_in
from tests.support.databases.behind import with_option

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor, read_cursor
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import StoreRefused

LATE = (
    "INSERT INTO {log} (xid, at, type, subject, details)"
    " VALUES (pg_current_xact_id(), now(), 'job.died', 'late', '{{}}')"
)


async def test_an_event_that_is_committed_late_is_not_passed_over(pg_store: PostgresStore, postgres_url: str) -> None:
    """Its id is given out first and becomes visible last: what came after it waits for it."""
    begin = (await pg_store.switch_event_log(DAY, By("alice"))).end
    with psycopg.connect(postgres_url) as slow:
        slow.execute(LATE.format(log=pg_store.naming("event_log")))
        quick = await job_in(JobState.SUCCEEDED, pg_store)
        assert await pg_store.read_events(begin, 10) == []
        joined_meanwhile = (await pg_store.event_log()).end
        slow.commit()
    events = await pg_store.read_events(begin, 10)
    assert [event.subject for event in events] == ["late", quick]
    assert await pg_store.read_events(read_cursor("id", events[0].id), 10) == events[1:]
    assert await pg_store.read_events(joined_meanwhile, 10) == events


async def test_what_no_follower_could_read_yet_is_not_pruned(pg_store: PostgresStore, postgres_url: str) -> None:
    begin = (await pg_store.switch_event_log(DAY, By("alice"))).end
    with psycopg.connect(postgres_url) as slow:
        slow.execute(LATE.format(log=pg_store.naming("event_log")))
        await job_in(JobState.SUCCEEDED, pg_store)
        await pg_store.switch_event_log(DAY / 10**9, By("alice"))
        assert await pg_store.forget_events(100) == 0
        slow.commit()
    assert len(await pg_store.read_events(begin, 10)) == 2
    assert await pg_store.forget_events(100) == 2


async def test_transactions_are_ordered_as_numbers(pg_store: PostgresStore, postgres_url: str) -> None:
    await pg_store.switch_event_log(DAY, By("alice"))
    log, switch = pg_store.naming("event_log"), pg_store.naming("event_switch")
    with psycopg.connect(postgres_url) as session:
        session.execute(f"UPDATE {switch} SET pruned_xid = '1'")
        for xid in ("100", "99", "9"):
            session.execute(
                f"INSERT INTO {log} (xid, at, type, subject, details) VALUES (%s::xid8, now(), 'job.died', %s, '{{}}')",
                (xid, xid),
            )
    assert [event.subject for event in await pg_store.read_events(Cursor(1, 0), 10)] == ["9", "99", "100"]
    assert [event.subject for event in await pg_store.read_events(Cursor(99, 0), 1)] == ["99"]


async def test_a_role_that_does_not_own_the_tables_gets_an_error_with_the_owner(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Callable[..., list[tuple[Any, ...]]]
) -> None:
    role = f"r_{schema}"
    [[owner]] = ask("SELECT current_user")
    ask(f'CREATE ROLE "{role}" LOGIN')
    ask(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    ask(f'GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON ALL TABLES IN SCHEMA "{schema}" TO "{role}"')
    ask(f'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA "{schema}" TO "{role}"')
    store = PostgresStore(with_option(postgres_url, "user", role), schema=schema)
    await store.open()
    refused = f"'{role}' cannot switch the event log.*run `perdure events on` or `off` once as '{owner}'"
    try:
        with pytest.raises(StoreRefused, match=refused):
            await store.switch_event_log(DAY, By("eve"))
        assert not (await pg_store.event_log()).is_on
        begin = (await pg_store.switch_event_log(DAY, By("alice"))).end
        with pytest.raises(StoreRefused, match=refused):
            await store.switch_event_log(None, By("eve"))
        assert (await store.switch_event_log(2 * DAY, By("eve"))).keep == 2 * DAY, "how long is no matter of triggers"
        job = await job_in(JobState.SUCCEEDED, store)
        assert [event.subject for event in await store.read_events(begin, 10)] == [job]
    finally:
        await store.close()
        ask(f'DROP OWNED BY "{role}"')
        ask(f'DROP ROLE "{role}"')
