"""Children that end in several processes at once while their parent parks: it is woken once, and never left asleep."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.support.builders.families import CHILDREN, KEY, as_parent, awaiting, offspring
from tests.support.builders.jobs import a_job, claim_some, employ, only, show
from tests.support.crew import SIZE, Crew, Ready

from perdure.app.connect import store_for
from perdure.domain.flows.flow import NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store

ROUNDS = 60
FEWER = 20  # of those in which PostgreSQL may have to find a deadlock first
CHILDREN_OF_EACH = 6


async def families(store: Store, count: int) -> tuple[list[Claim], dict[JobId, list[Claim]]]:
    """Running parents, each with running children."""
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(count)])
    parents = await claim_some(store, worker_id, count)
    for parent in parents:
        assert await store.spawn(parent, NewFamily(key=KEY, children=offspring(CHILDREN_OF_EACH)))
    children: dict[JobId, list[Claim]] = {parent.job_id: [] for parent in parents}
    for claim in await claim_some(store, worker_id, count * CHILDREN_OF_EACH, CHILDREN):
        assert claim.parent is not None
        children[claim.parent].append(claim)
    return parents, children


async def test_c5_the_parent_is_woken_once_whichever_child_ends_last(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """One process parks the parents, three end the children, each round at the same instant."""
    parents, children = await families(real_time_store, ROUNDS)
    parks: list[list[Transition]] = [[as_parent(awaiting(parent))] for parent in parents]
    ends = [[transition.succeeded(claim, None, ()) for claim in children[parent.job_id]] for parent in parents]
    third = CHILDREN_OF_EACH // 3
    work = [parks, *([moves[part * third : (part + 1) * third] for moves in ends] for part in range(3))]
    applied = await asyncio.to_thread(crew.together, acknowledge_in_step, [(engine_url, moves) for moves in work])
    assert applied == [ROUNDS] + [ROUNDS * third] * 3
    for parent in parents:
        family = await real_time_store.family(parent.job_id, KEY)
        assert family is not None
        assert (family.succeeded, family.failed) == (CHILDREN_OF_EACH, 0)
        view = await show(real_time_store, parent.job_id)
        assert (view.state, view.reason) == (JobState.READY, Reason.CHILDREN_SETTLED)
    woken = await claim_some(real_time_store, await employ(real_time_store), 2 * ROUNDS)
    assert Counter(claim.job_id for claim in woken) == Counter(parent.job_id for parent in parents)


async def test_c8_a_parent_that_ends_while_its_children_do_counts_each_of_them_once(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Each child has ended by itself, or was cancelled and its own word came too late."""
    parents, children = await families(real_time_store, ROUNDS)
    ends: list[list[Transition]] = [[as_parent(transition.succeeded(parent, None, ()))] for parent in parents]
    theirs = [[transition.succeeded(claim, None, ()) for claim in children[parent.job_id]] for parent in parents]
    third = CHILDREN_OF_EACH // 3
    work = [ends, *([moves[part * third : (part + 1) * third] for moves in theirs] for part in range(3))]
    applied = await asyncio.to_thread(crew.together, acknowledge_in_step, [(engine_url, moves) for moves in work])
    assert applied[0] == ROUNDS
    succeeded = 0
    for parent in parents:
        family = await real_time_store.family(parent.job_id, KEY)
        assert family is not None
        assert family.succeeded + family.failed == CHILDREN_OF_EACH
        succeeded += family.succeeded
    assert succeeded == sum(applied[1:])
    states = [(await show(real_time_store, claim.job_id)).state for claims in children.values() for claim in claims]
    assert Counter(states)[JobState.SUCCEEDED] == succeeded
    assert set(states) <= {JobState.SUCCEEDED, JobState.CANCELLED}


async def test_c7_a_parent_deleted_while_it_spawns_leaves_no_child_alive(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Either the children were there and are cancelled with it, or none came in."""
    worker_id = await employ(real_time_store)
    await real_time_store.insert([a_job() for _ in range(FEWER)])
    parents = await claim_some(real_time_store, worker_id, FEWER)
    roles = [(engine_url, parents, bool(number % 2)) for number in range(SIZE)]
    await asyncio.to_thread(crew.together, spawn_or_delete, roles)
    assert [await real_time_store.job(parent.job_id) for parent in parents] == [None] * FEWER
    states = {count.state for count in await real_time_store.counts()}
    assert states <= {JobState.CANCELLED}
    for parent in parents:
        assert await real_time_store.children(parent.job_id, KEY) == []


def acknowledge_in_step(ready: Ready, url: str, rounds: list[list[Transition]]) -> int:
    """Acknowledge the moves of one round after the other, at the same instant as the others; how many applied."""

    async def work(store: Store) -> int:
        applied = 0
        for moves in rounds:
            await asyncio.to_thread(ready)
            applied += sum([(await store.acknowledge([move])).applied for move in moves])
        return applied

    return asyncio.run(_with_store(url, work))


def spawn_or_delete(ready: Ready, url: str, parents: list[Claim], deletes: bool) -> int:
    """Spawn children for each parent, or delete it, at the same instant as the others."""

    async def work(store: Store) -> int:
        done = 0
        for parent in parents:
            await asyncio.to_thread(ready)
            if deletes:
                done += len(await store.delete(only(parent.job_id), By("ops"), 10))
            else:
                done += await store.spawn(parent, NewFamily(key=KEY, children=offspring(3)))
        return done

    return asyncio.run(_with_store(url, work))


async def _with_store(url: str, work: Callable[[Store], Awaitable[int]]) -> int:
    store = store_for(url)
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()
