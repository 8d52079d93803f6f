"""Children that somebody gives a new life: their family waits for it, and what it brings counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.support.builders.families import (
    CHILDREN,
    KEY,
    as_parent,
    awaiting,
    claim_children,
    end_parent,
    offspring,
    spawn,
    standing,
    start_parent,
    tally,
)
from tests.support.builders.jobs import (
    A_FAILURE,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    only,
    show,
    state_of,
)
from tests.support.crew import SIZE, Crew, Ready

from perdure.app.connect import store_for
from perdure.domain.flows.flow import NewFamily, OnEnd
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

READY, WAITING = "ready", "waiting"
ROUNDS = 40


def died(claim: Claim) -> Transition:
    """The child is dead."""
    return transition.died(claim, Reason.PERMANENT, A_FAILURE)


def done(claim: Claim, result: str | None = None) -> Transition:
    """The child has succeeded."""
    return transition.succeeded(claim, result, ())


async def test_a_child_with_a_new_life_is_waited_for_and_what_it_brings_counts(store: Store) -> None:
    parent, [first, second] = await start_parent(store, 2)
    claims = await claim_children(store)
    await apply(store, died(claims[first]), awaiting(parent))
    assert await store.requeue(only(first), By("ops"), 10) == [first]
    assert await tally(store, parent.job_id) == (2, 0, 0)
    assert (await store.children(parent.job_id, KEY))[0].fate is None
    await apply(store, done(claims[second]))
    assert (await standing(store, parent.job_id))[0] == WAITING
    again = (await claim_children(store))[first]
    await apply(store, done(again, '"at last"'))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    assert await tally(store, parent.job_id) == (2, 2, 0)
    seen = (await store.children(parent.job_id, KEY))[0]
    assert (seen.fate, seen.result) == (JobState.SUCCEEDED, '"at last"')
    assert [one.job_id for one in await claim_some(store, await employ(store))] == [parent.job_id]


async def test_a_child_that_dies_again_is_counted_again(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    for _ in range(3):
        await apply(store, died((await claim_children(store))[child]))
        assert await tally(store, parent.job_id) == (1, 0, 1)
        await store.requeue(only(child), By("ops"), 10)
        assert await tally(store, parent.job_id) == (1, 0, 0)
    await apply(store, transition.cancelled((await claim_children(store))[child], "enough"))
    assert await tally(store, parent.job_id) == (1, 0, 1)
    assert [(one.fate, one.error) for one in await store.children(parent.job_id, KEY)] == [
        (JobState.CANCELLED, "enough")
    ]


async def test_what_was_said_of_an_earlier_end_is_kept(store: Store) -> None:
    """A parent that has seen the child dead and gone on can say why, whenever it is run again."""
    parent, [child] = await start_parent(store, 1)
    await apply(store, died((await claim_children(store))[child]))
    [before] = await store.children(parent.job_id, KEY)
    await store.requeue(only(child), By("ops"), 10)
    assert [one.error for one in await store.children(parent.job_id, KEY)] == [before.error]
    await apply(store, done((await claim_children(store))[child]))
    assert [one.error for one in await store.children(parent.job_id, KEY)] == [before.error]


async def test_a_success_counts_for_good(store: Store) -> None:
    """Its parent may have gone on with what it brought: a second life is lived for itself."""
    parent, [child, _] = await start_parent(store, 2)
    await apply(store, done((await claim_children(store))[child], '"first"'))
    assert await store.requeue(only(child), By("ops"), 10) == [child]
    assert await tally(store, parent.job_id) == (2, 1, 0)
    await apply(store, died((await claim_children(store))[child]))
    assert await tally(store, parent.job_id) == (2, 1, 0)
    seen = (await store.children(parent.job_id, KEY))[0]
    assert (seen.fate, seen.result, seen.error) == (JobState.SUCCEEDED, '"first"', None)


async def test_a_parent_that_comes_to_wait_sleeps_until_the_new_life_is_over(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    await apply(store, died((await claim_children(store))[child]))
    await store.requeue(only(child), By("ops"), 10)
    await apply(store, as_parent(awaiting(parent)))
    assert (await standing(store, parent.job_id))[0] == WAITING
    await apply(store, died((await claim_children(store))[child]))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_a_quorum_that_was_out_of_reach_is_within_it_again(store: Store) -> None:
    parent, children = await start_parent(store, 3, quorum=2)
    claims = await claim_children(store)
    await apply(store, died(claims[children[0]]), died(claims[children[1]]))
    await store.requeue(only(children[1]), By("ops"), 10)
    await apply(store, as_parent(awaiting(parent)))
    assert (await standing(store, parent.job_id))[0] == WAITING
    await apply(store, done(claims[children[2]]))
    assert (await standing(store, parent.job_id))[0] == WAITING
    await apply(store, done((await claim_children(store))[children[1]]))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    assert await tally(store, parent.job_id) == (3, 2, 1)


async def test_many_children_of_several_families_are_given_a_new_life_at_once(store: Store) -> None:
    parent, children = await start_parent(store, 4)
    others = [job.id for job in (await spawn(store, parent, *offspring(3), key="others")).children]
    claims = await claim_children(store)
    await apply(store, done(claims[children[0]]), *(died(claims[one]) for one in (*children[1:], *others)))
    dead = JobFilter(states=frozenset({JobState.DEAD}))
    assert set(await store.requeue(dead, By("ops"), 5)) <= {*children[1:], *others}
    left = await store.family(parent.job_id, KEY), await store.family(parent.job_id, "others")
    assert sum(family.failed for family in left if family is not None) == 1
    await store.requeue(dead, By("ops"), 5)
    assert await tally(store, parent.job_id) == (4, 1, 0)
    assert await tally(store, parent.job_id, "others") == (3, 0, 0)


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_a_new_life_that_is_called_off_wakes_the_parent(store: Store, how: str) -> None:
    parent, [child] = await start_parent(store, 1)
    await apply(store, died((await claim_children(store))[child]))
    await store.requeue(only(child), By("ops"), 10)
    await apply(store, as_parent(awaiting(parent)))
    if how == "cancel":
        await store.cancel(only(child), By("ops", "enough"), 10)
    else:
        await store.delete(only(child), By("ops"), 10)
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    assert await tally(store, parent.job_id) == (1, 0, 1)


@pytest.mark.parametrize("on_end", list(OnEnd))
async def test_c8_a_new_life_ends_with_the_parent_as_any_other(store: Store, on_end: OnEnd) -> None:
    parent, [child] = await start_parent(store, 1, on_end=on_end)
    await apply(store, died((await claim_children(store))[child]))
    await store.requeue(only(child), By("ops"), 10)
    await end_parent(store, done(parent))
    is_kept = on_end is OnEnd.KEEP
    assert await state_of(store, child) is (JobState.READY if is_kept else JobState.CANCELLED)
    assert await tally(store, parent.job_id) == (1, 0, 0 if is_kept else 1)


async def test_the_children_of_a_dead_parent_live_again_and_then_the_parent(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    await apply(store, died((await claim_children(store))[child]))
    await end_parent(store, died(parent))
    await store.requeue(only(child), By("ops"), 10)
    await store.requeue(only(parent.job_id), By("ops"), 10)
    again = await claim_one(store, await employ(store))
    await apply(store, awaiting(again))
    assert (await standing(store, parent.job_id))[0] == WAITING
    await apply(store, done((await claim_children(store))[child]))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_a_forgotten_parent_is_no_obstacle(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    await apply(store, died((await claim_children(store))[child]))
    await store.delete(only(parent.job_id), By("ops"), 10)
    assert await store.requeue(only(child), By("ops"), 10) == [child]
    await apply(store, done((await claim_children(store))[child]))
    assert await state_of(store, child) is JobState.SUCCEEDED


async def test_new_lives_while_the_parent_parks_and_its_other_children_end(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Each round at the same instant: the parent parks, a child ends, and a dead one is requeued and ends well."""
    store = real_time_store
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(ROUNDS)])
    parents = await claim_some(store, worker_id, ROUNDS)
    dead: list[JobId] = []
    running: list[Claim] = []
    for parent in parents:
        family = NewFamily(key=KEY, children=offspring(2))
        assert await store.spawn(parent, family)
        one, other = await claim_some(store, worker_id, 2, CHILDREN)
        await apply(store, died(one))
        dead.append(one.job_id)
        running.append(other)
    parks = [as_parent(awaiting(parent)) for parent in parents]
    ends = [done(claim) for claim in running]
    roles: list[tuple[str, Sequence[Transition], list[JobId]]] = [
        (engine_url, parks, []),
        (engine_url, ends, []),
        *((engine_url, [], dead) for _ in range(SIZE - 2)),
    ]
    await asyncio.to_thread(crew.together, move_or_requeue, roles)
    for parent in parents:
        assert await tally(store, parent.job_id) == (2, 2, 0)
        view = await show(store, parent.job_id)
        assert (view.state, view.reason) == (JobState.READY, Reason.CHILDREN_SETTLED)
    woken = await claim_some(store, await employ(store), 2 * ROUNDS)
    assert Counter(claim.job_id for claim in woken) == Counter(parent.job_id for parent in parents)


def move_or_requeue(ready: Ready, url: str, moves: Sequence[Transition], dead: list[JobId]) -> int:
    """In each round, together with the others: acknowledge a move, or requeue a dead child and let it succeed."""

    async def work() -> int:
        store = store_for(url)
        await store.open()
        requeued = 0
        try:
            worker_id = await employ(store)
            for turn in range(ROUNDS):
                await asyncio.to_thread(ready)
                if moves:
                    await apply(store, moves[turn])
                elif await store.requeue(only(dead[turn]), By("crew"), 1):
                    requeued += 1
                    await apply(store, *(done(claim) for claim in await claim_some(store, worker_id, 10, CHILDREN)))
        finally:
            await store.close()
        return requeued

    return asyncio.run(work())
