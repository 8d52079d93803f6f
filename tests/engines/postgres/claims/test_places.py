"""How this engine turns times into numbers, and finds the jobs that came back to old ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.engines.postgres.conftest import Ask
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.store import PostgresStore
from perdure.storage.records import Keep, Wanted


@pytest.fixture
async def pg_store(postgres_url: str, schema: str, clock: ManualClock) -> AsyncIterator[PostgresStore]:
    """A store, open and migrated, whose time the test moves."""
    store = PostgresStore(postgres_url, schema=schema, clock=clock)
    await store.open()
    try:
        await store.migrate()
        yield store
    finally:
        await store.close()


async def promote(store: PostgresStore) -> None:
    while (await store.promote(100)).total:
        pass


async def test_retries_promoted_together_keep_their_order_where_the_numbers_begin_again(
    pg_store: PostgresStore, ask: Ask, clock: ManualClock
) -> None:
    """Numbers between those of the sequence come from one that cycles."""
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job() for _ in range(20)])
    claims = await claim_some(pg_store, worker_id)
    waits = [(number + 1) * SECOND for number in range(20)]
    await apply(
        pg_store,
        *(
            transition.retrying(claim, Reason.FAILED, A_FAILURE, wait)
            for claim, wait in zip(claims, waits, strict=True)
        ),
    )
    ask("SELECT setval('fair_seq', 1048570)")
    clock.move(MINUTE)
    await promote(pg_store)
    assert [c.job_id for c in await claim_some(pg_store, worker_id)] == [claim.job_id for claim in claims]


async def test_a_job_whose_number_is_taken_goes_to_the_end(pg_store: PostgresStore, ask: Ask) -> None:
    """Which only happens if a million jobs got numbers in one gap."""
    worker_id = await employ(pg_store)
    first = await enqueue(pg_store)
    claim = await claim_one(pg_store, worker_id)
    others = [await enqueue(pg_store) for _ in range(3)]
    ask("UPDATE lease SET seq = (SELECT min(seq) FROM ready)")
    await apply(pg_store, transition.released(claim))
    assert [c.job_id for c in await claim_some(pg_store, worker_id)] == [*others, first]


async def test_the_newest_number_is_noted_twice_a_second_while_it_changes(
    pg_store: PostgresStore, ask: Ask, clock: ManualClock
) -> None:
    half, noted = timedelta(milliseconds=500), "SELECT count(*) FROM seq_mark"
    await pg_store.promote(1)
    await enqueue(pg_store)
    clock.move(half / 2)
    await pg_store.promote(1)
    assert ask(noted) == [(1,)], "too soon"
    clock.move(half / 2)
    await pg_store.promote(1)
    assert ask(noted) == [(2,)]
    clock.move(HOUR)
    await pg_store.promote(1)
    assert ask(noted) == [(2,)], "nothing has changed"
    await enqueue(pg_store)
    await pg_store.promote(1)
    assert ask(noted) == [(3,)]


async def test_numbers_noted_long_ago_are_forgotten_but_the_last_one(
    pg_store: PostgresStore, ask: Ask, clock: ManualClock
) -> None:
    times = []
    for _ in range(5):
        await enqueue(pg_store)
        clock.move(SECOND)
        await pg_store.promote(1)
        times.append(clock.now())
    clock.move(HOUR)
    await enqueue(pg_store)
    await pg_store.promote(1)
    await pg_store.prune(Keep(), 10)
    assert ask("SELECT at FROM seq_mark ORDER BY at") == [(times[-1],), (clock.now(),)]


async def test_a_look_at_one_level_takes_what_came_back_to_that_level(pg_store: PostgresStore) -> None:
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job(priority=priority) for priority in (3, 3, 7, 7)])
    claims = await claim_some(pg_store, worker_id)
    await apply(pg_store, *map(transition.released, claims))
    found = await pg_store.claim(worker_id, [Wanted("default", 10, 7)])
    assert [claim.job_id for claim in found] == [claim.job_id for claim in claims[2:]]


async def test_what_comes_back_through_another_store_is_found_by_the_second_claim(
    pg_store: PostgresStore, postgres_url: str, schema: str, clock: ManualClock
) -> None:
    """The first one tells of it, although there is always another job to claim."""
    elsewhere = PostgresStore(postgres_url, schema=schema, clock=clock)
    await elsewhere.open()
    try:
        await pg_store.insert([a_job() for _ in range(100)])
        held = await claim_some(pg_store, await employ(pg_store), 3)
        busy = await employ(elsewhere)
        for _ in range(5):
            await claim_some(elsewhere, busy, 10)
        assert not elsewhere._returns.expected
        await apply(pg_store, *map(transition.released, held))
        await claim_some(elsewhere, busy, 3)
        found = await claim_some(elsewhere, busy, 3)
        assert [claim.job_id for claim in found] == [claim.job_id for claim in held]
        await claim_some(elsewhere, busy, 3)
        await claim_some(elsewhere, busy, 3)
        assert not elsewhere._returns.expected
    finally:
        await elsewhere.close()


async def test_what_comes_back_to_an_empty_queue_is_found_by_the_first_claim(
    pg_store: PostgresStore, postgres_url: str, schema: str, clock: ManualClock
) -> None:
    elsewhere = PostgresStore(postgres_url, schema=schema, clock=clock)
    await elsewhere.open()
    try:
        await pg_store.insert([a_job() for _ in range(10)])
        held = await claim_some(pg_store, await employ(pg_store), 3)
        busy = await employ(elsewhere)
        for _ in range(3):
            await claim_some(elsewhere, busy, 10)
        await apply(pg_store, *map(transition.released, held))
        found = await claim_some(elsewhere, busy, 3)
        assert [claim.job_id for claim in found] == [claim.job_id for claim in held]
    finally:
        await elsewhere.close()
