"""Families under fire: whatever happens to their members at once, the counts are right and no deadlock occurs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask, until_waiting
from tests.support.builders.families import CHILDREN, KEY, as_parent, awaiting, offspring
from tests.support.builders.jobs import A_FAILURE, HOUR, a_job, apply, claim_some, employ, only, start
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import with_option

from perdure.app.connect import store_for
from perdure.domain.flows.flow import Awaits, NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.store import PostgresStore

FAMILIES, SIZE_OF_EACH, GRANDCHILDREN = 8, 30, 3


async def three_generations(store: PostgresStore) -> list[Claim]:
    """Parents, their children, and children of some of these: all of them running."""
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(FAMILIES)])
    parents = await claim_some(store, worker_id, FAMILIES)
    for parent in parents:
        assert await store.spawn(parent, NewFamily(key=KEY, children=offspring(SIZE_OF_EACH)))
    children = await claim_some(store, worker_id, FAMILIES * SIZE_OF_EACH, CHILDREN)
    for child in children[::3]:
        assert await store.spawn(child, NewFamily(key=KEY, children=offspring(GRANDCHILDREN)))
    return [*parents, *children, *await claim_some(store, worker_id, 10_000, CHILDREN)]


@pytest.mark.parametrize("cancels", [False, True])
async def test_ends_of_three_generations_in_any_order_are_counted_once(
    pg_store: PostgresStore, postgres_url: str, schema: str, crew: Crew, ask: Ask, cancels: bool
) -> None:
    """Without a deadlock, unless jobs are called off in the same moment: then one is rare, and tried again."""
    claims = await three_generations(pg_store)
    url = with_option(postgres_url, "schema", schema)
    before = deadlocks(postgres_url)
    roles = [(url, claims, seed, cancels) for seed in range(SIZE)]
    applied = await asyncio.to_thread(crew.together, end_in_any_order, roles)
    assert min(applied) > 0
    assert cancels or deadlocks(postgres_url) == before
    wrong = ask(
        "SELECT * FROM family f JOIN LATERAL (SELECT count(*) FILTER (WHERE fate = 'succeeded') AS succeeded,"
        " count(*) FILTER (WHERE fate <> 'succeeded') AS failed FROM child"
        " WHERE parent_id = f.parent_id AND family = f.key) c"
        " ON (f.succeeded, f.failed) <> (c.succeeded, c.failed)"
    )
    assert wrong == []
    assert ask("SELECT c.* FROM child c JOIN finished f ON f.job_id = c.job_id WHERE c.fate <> f.state") == []
    places = Counter(
        ask(
            "SELECT job_id FROM ready UNION ALL SELECT job_id FROM parked UNION ALL SELECT job_id FROM lease"
            " UNION ALL SELECT job_id FROM finished"
        )
    )
    assert set(places.values()) == {1}
    assert len(places) == len(claims)
    asleep = ask(
        "SELECT p.* FROM parked p JOIN family f ON f.parent_id = p.job_id AND p.awaits = 'family:' || f.key"
        " WHERE f.succeeded + f.failed >= f.total"
    )
    assert asleep == []
    orphaned = ask(
        "SELECT c.* FROM child c JOIN finished p ON p.job_id = c.parent_id"
        " WHERE NOT EXISTS (SELECT FROM finished f WHERE f.job_id = c.job_id)"
    )
    assert orphaned == []


async def test_a_child_that_is_claimed_while_its_parent_ends_is_cancelled_all_the_same(
    pg_store: PostgresStore, ask: Ask, postgres_url: str, schema: str
) -> None:
    """The statement waits for the claim, and misses the lease that it cannot see yet: the next one finds it."""
    parent = await start(pg_store)
    [child] = offspring(1)
    assert await pg_store.spawn(parent, NewFamily(key=KEY, children=(child,)))
    worker_id = await employ(pg_store)
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as claimant:
        claimant.execute("DELETE FROM ready WHERE job_id = %s", (child.id,))
        claimant.execute(
            "INSERT INTO lease (job_id, token, worker_id, queue, priority, failures, crashes, since, claimed_at)"
            " VALUES (%s, 77, %s, 'children', 5, 0, 0, now(), now())",
            (child.id, worker_id),
        )
        ending = asyncio.create_task(apply(pg_store, as_parent(transition.succeeded(parent, None, ()))))
        await until_waiting(ask, schema)
        claimant.commit()
        await ending
    assert ask("SELECT state, note FROM finished WHERE job_id = %s", child.id) == [
        ("cancelled", "parent job completed")
    ]
    assert [request.token for request in await pg_store.cancel_requests(worker_id)] == [77]


async def test_batches_without_kin_take_the_short_way(pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [await start(pg_store, queue="plain") for _ in range(3)]

    async def refuse(*_: object) -> None:
        raise AssertionError("nothing to settle here")

    monkeypatch.setattr(Settling, "lock", refuse)
    monkeypatch.setattr(Settling, "settle", refuse)
    await apply(pg_store, transition.succeeded(claims[0], None, ()))
    await apply(
        pg_store,
        transition.died(claims[1], Reason.PERMANENT, A_FAILURE),
        transition.waiting(claims[2], Reason.SLEEPING, HOUR),
    )


def deadlocks(postgres_url: str) -> int:
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchall()
    return int(rows[0][0])


def end_in_any_order(ready: Ready, url: str, claims: list[Claim], seed: int, cancels: bool) -> int:
    """End and park jobs, and cancel some, in batches that no other caller has in this order; how many moves applied."""

    async def work() -> int:
        chance = random.Random(seed)  # noqa: S311 - for tests
        ours = chance.sample(claims, len(claims) * 2 // 3)
        store = store_for(url)
        await store.open()
        applied = 0
        try:
            ready()
            while ours:
                batch, ours = ours[:12], ours[12:]
                moves = [move_for(claim, chance) for claim in batch]
                applied += (await store.acknowledge(moves)).applied
                if cancels and chance.random() < 0.3:
                    await store.cancel(only(chance.choice(claims).job_id), By("crew", "enough"), 1)
        finally:
            await store.close()
        return applied

    return asyncio.run(work())


def move_for(claim: Claim, chance: random.Random) -> Transition:
    moves = [
        transition.succeeded(claim, None, ()),
        transition.died(claim, Reason.PERMANENT, A_FAILURE),
        awaiting(claim),
        transition.parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=f"e{chance.randrange(5)}"), None),
    ]
    return as_parent(chance.choice(moves))
