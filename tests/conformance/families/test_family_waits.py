"""Parents that wait for their children: parked at no cost, and woken once (C5)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.conftest import OpenStore
from tests.support.builders.families import (
    KEY,
    as_parent,
    awaiting,
    claim_children,
    offspring,
    spawn,
    standing,
    start_parent,
    tally,
)
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    MINUTE,
    a_key,
    apply,
    claim_one,
    employ,
    enqueue,
    only,
    show,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store

READY, WAITING, CANCELLED = "ready", "waiting", "cancelled"
MANY = 10_000
SOON = 10.0


async def test_c5_the_parent_waits_at_no_cost_and_is_woken_by_the_last_child(store: Store) -> None:
    parent, children = await start_parent(store)
    await apply(store, as_parent(awaiting(parent)))
    view = await show(store, parent.job_id)
    assert (view.state, view.reason, view.awaits) == (JobState.WAITING, Reason.AWAITING_CHILDREN, f"family:{KEY}")
    assert (view.due_at, view.worker) == (None, None)
    claims = await claim_children(store)
    for child in children[:-1]:
        await apply(store, transition.succeeded(claims[child], None, ()))
        assert (await standing(store, parent.job_id))[0] == WAITING
    await apply(store, transition.died(claims[children[-1]], Reason.PERMANENT, A_FAILURE))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    view = await show(store, parent.job_id)
    assert (view.awaits, view.failures, view.crashes) == (None, 0, 0)
    assert (await claim_one(store, await employ(store))).is_parent


async def test_a_parent_that_is_woken_is_heard_of_in_other_processes_at_once(
    store: Store, other_store: OpenStore
) -> None:
    parent, children = await start_parent(store)
    await apply(store, as_parent(awaiting(parent)))
    claims = await claim_children(store)
    async with (await other_store()).wakeups() as items:
        with suppress(TimeoutError):  # an echo of what happened before
            await asyncio.wait_for(anext(items), 0.2)
        await store.acknowledge([transition.succeeded(claims[child], None, ()) for child in children])
        await asyncio.wait_for(anext(items), SOON)


async def test_c5_all_of_it_in_one_batch(store: Store) -> None:
    """The parent parks and its children end in one transaction, in any order: it is ready, once."""
    for order in (1, -1):
        parent, children = await start_parent(store)
        claims = await claim_children(store)
        moves = [awaiting(parent), *(transition.succeeded(claims[child], None, ()) for child in children)]
        await apply(store, *moves[::order])
        assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
        again = await claim_one(store, await employ(store))
        await apply(store, transition.succeeded(again, None, ()))


async def test_c5_a_parent_whose_children_are_there_already_does_not_park(store: Store) -> None:
    parent, _ = await start_parent(store)
    claims = await claim_children(store)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims.values()))
    await apply(store, awaiting(parent))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_c5_a_family_without_children_is_nothing_to_wait_for(store: Store) -> None:
    """Nor is one that was never made: the parent comes back and sees for itself."""
    parent, _ = await start_parent(store, 0)
    await apply(store, awaiting(parent))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    again = await claim_one(store, await employ(store))
    await apply(store, awaiting(again, "never made"))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


@pytest.mark.parametrize(
    ("succeed", "fail", "settled"), [(1, 0, False), (2, 0, True), (0, 2, False), (0, 3, True), (1, 2, False)]
)
async def test_c5_a_quorum_wakes_the_parent_once_it_is_reached_or_out_of_reach(
    store: Store, succeed: int, fail: int, settled: bool
) -> None:
    parent, children = await start_parent(store, 4, quorum=2)
    claims = await claim_children(store)
    await apply(store, awaiting(parent))
    for child in children[:succeed]:
        await apply(store, transition.succeeded(claims[child], None, ()))
    for child in children[succeed : succeed + fail]:
        await apply(store, transition.died(claims[child], Reason.PERMANENT, A_FAILURE))
    assert (await standing(store, parent.job_id))[0] == (READY if settled else WAITING)
    assert await tally(store, parent.job_id) == (4, succeed, fail)


async def test_children_beyond_the_quorum_are_counted_and_wake_no_parent(store: Store) -> None:
    """The parent waits for something else by then, or runs."""
    parent, [first, second, third] = await start_parent(store, 3, quorum=1)
    claims = await claim_children(store)
    await apply(store, awaiting(parent))
    await apply(store, transition.succeeded(claims[first], None, ()))
    again = await claim_one(store, await employ(store))
    await apply(store, transition.succeeded(claims[second], None, ()))
    await apply(store, transition.waiting(again, Reason.SNOOZED, HOUR))
    await apply(store, transition.succeeded(claims[third], None, ()))
    assert await standing(store, parent.job_id) == (WAITING, Reason.SNOOZED)
    assert await tally(store, parent.job_id) == (3, 3, 0)


async def test_a_parent_is_woken_only_by_the_family_it_waits_for(store: Store) -> None:
    parent, _ = await start_parent(store, 1)
    [other] = (await spawn(store, parent, *offspring(1, queue="others"), key="others")).children
    await apply(store, awaiting(parent, "others"))
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, None, ()))
    assert (await show(store, parent.job_id)).awaits == "family:others"
    claim = await claim_one(store, await employ(store), "others")
    assert claim.job_id == other.id
    await apply(store, transition.succeeded(claim, None, ()))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_a_wait_for_children_may_come_due(store: Store, clock: ManualClock) -> None:
    """The deadline wakes the parent; what its children do afterwards does not wake it a second time."""
    parent, _ = await start_parent(store, 1)
    await apply(
        store, transition.parked(parent, Reason.AWAITING_CHILDREN, MINUTE, Awaits(family=KEY), "until tomorrow")
    )
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert await standing(store, parent.job_id) == (READY, Reason.DUE)
    assert (await show(store, parent.job_id)).awaits is None
    again = await claim_one(store, await employ(store))
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, None, ()))
    assert (await show(store, parent.job_id)).state is JobState.RUNNING
    await apply(store, transition.succeeded(again, None, ()))


async def test_a_parent_with_a_cancel_request_is_not_parked(store: Store) -> None:
    parent, children = await start_parent(store)
    await store.cancel(only(parent.job_id), By("ops", "enough"), 10)
    await apply(store, as_parent(awaiting(parent)))
    assert await standing(store, parent.job_id) == (CANCELLED, "cancelled: enough")
    assert {await standing(store, child) for child in children} == {(CANCELLED, "cancelled: parent job cancelled")}


async def test_a_parent_that_must_take_its_unique_key_back_is_held_back(store: Store, clock: ManualClock) -> None:
    """It held the key only while it was in line; somebody else has it when its children are there."""
    parent = await start(store, unique=a_key(states=[JobState.READY]))
    await spawn(store, parent, *offspring(1))
    await apply(store, awaiting(parent))
    rival = await enqueue(store, unique=a_key(states=[JobState.READY]))
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, None, ()))
    view = await show(store, parent.job_id)
    assert (view.state, view.awaits) == (JobState.PAUSED, None)
    assert view.reason.startswith(Reason.KEY_HELD)
    assert (await claim_one(store, await employ(store))).job_id == rival
    clock.move(MINUTE)
    await store.promote(10)
    assert await state_of(store, parent.job_id) is JobState.READY


async def test_c5_effects_settle_the_family_with_the_commit(store: Store) -> None:
    """A child that acknowledges together with its own writes wakes its parent as any other."""
    parent, [child] = await start_parent(store, 1)
    claims = await claim_children(store)
    await apply(store, awaiting(parent))
    effects = await store.begin_effects()
    assert (await effects.commit_with(transition.succeeded(claims[child], None, ()))).applied == 1
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_two_stores_agree_on_a_family(store: Store, other_store: OpenStore) -> None:
    parent, children = await start_parent(store, 2)
    other = await other_store()
    claims = await claim_children(other)
    await apply(other, transition.succeeded(claims[children[0]], None, ()))
    await apply(store, awaiting(parent))
    await apply(other, transition.succeeded(claims[children[1]], None, ()))
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)


async def test_ten_thousand_children_are_fine(store: Store) -> None:
    parent, children = await start_parent(store, MANY)
    assert await tally(store, parent.job_id) == (MANY, 0, 0)
    await apply(store, awaiting(parent))
    claims = await claim_children(store, MANY)
    assert len(claims) == MANY
    moves = [transition.succeeded(claims[child], None, ()) for child in children]
    for start_at in range(0, MANY, 1_000):
        await apply(store, *moves[start_at : start_at + 1_000])
    assert await tally(store, parent.job_id) == (MANY, MANY, 0)
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
