"""Ends of parents: whatever way a parent goes, its children are not left running alone (C6, C8)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

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
    DAY,
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
from perdure.domain.flows.flow import OnEnd
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest, JobFilter, Page, Wanted

CANCELLED, SUCCEEDED, READY = "cancelled", "succeeded", "ready"
MANY = 10_000


class Household(NamedTuple):
    """A running parent with children in every state."""

    parent: Claim
    children: dict[str, JobId]
    running: Claim  # of the child that runs
    nurse: WorkerId  # who runs it


async def every_standing(store: Store, clock: ManualClock) -> Household:
    """A family, and another one whose only child is not due yet."""
    parent, children = await start_parent(store, 6)
    states = ("waiting", "paused", "succeeded", "dead", "running", "ready")
    named = dict(zip(states, children, strict=True))
    worker_id = await employ(store, name="nurse")
    claims = {claim.job_id: claim for claim in await store.claim(worker_id, [Wanted(CHILDREN, 5)])}
    assert set(claims) == set(children[:5])
    await apply(
        store,
        transition.waiting(claims[named["waiting"]], Reason.SNOOZED, HOUR),
        transition.paused(claims[named["paused"]], Reason.PAUSED, None),
        transition.succeeded(claims[named["succeeded"]], "1", ()),
        transition.died(claims[named["dead"]], Reason.PERMANENT, A_FAILURE),
    )
    [scheduled] = (await spawn(store, parent, *offspring(1, delay=HOUR), key="later")).children
    clock.move(MINUTE)
    return Household(parent, named | {"scheduled": scheduled.id}, claims[named["running"]], worker_id)


ENDS = {
    "parent job completed": lambda claim: transition.succeeded(claim, None, ()),
    "parent job died": lambda claim: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
    "parent job cancelled": lambda claim: transition.cancelled(claim, "enough"),
}


@pytest.mark.parametrize("why", ENDS)
async def test_c8_a_parent_that_ends_cancels_the_children_that_are_not_final(
    store: Store, clock: ManualClock, why: str
) -> None:
    parent, children, *_ = await every_standing(store, clock)
    await end_parent(store, ENDS[why](parent))
    for state, child in children.items():
        expected = {"succeeded": (SUCCEEDED, "done"), "dead": ("dead", "permanent failure")}
        assert await standing(store, child) == expected.get(state, (CANCELLED, f"cancelled: {why}"))
    view = await show(store, children["running"])
    assert (view.finished_at, view.worker) == (clock.now(), "nurse")
    assert await tally(store, parent.job_id) == (6, 1, 5)
    assert await tally(store, parent.job_id, "later") == (1, 0, 1)
    errors = [child.error for child in await store.children(parent.job_id, KEY)]
    assert Counter(errors) == {why: 4, None: 1, "builtins.ValueError: no such host": 1}
    clock.move(DAY)
    assert (await store.promote(100)).total == 0
    assert await claim_children(store) == {}


async def test_c8_the_late_result_of_a_running_child_is_ignored(store: Store, clock: ManualClock) -> None:
    """Its worker is told to stop the attempt, once."""
    parent, children, running, nurse = await every_standing(store, clock)
    await end_parent(store, transition.succeeded(parent, None, ()))
    told = CancelRequest(running.job_id, running.token, "parent job completed")
    assert await store.cancel_requests(nurse) == [told]
    assert await store.cancel_requests(nurse) == []
    late = await store.acknowledge([transition.succeeded(running, '"late"', ())])
    assert (late.applied, late.stale) == (0, (running,))
    view = await show(store, children["running"])
    assert (view.state, view.result) == (JobState.CANCELLED, None)
    assert await tally(store, parent.job_id) == (6, 1, 5)


async def test_c8_a_family_may_be_kept(store: Store) -> None:
    """Each family has its own say; a kept child goes on, and its end is counted."""
    parent, kept = await start_parent(store, 2, on_end=OnEnd.KEEP)
    lost = (await spawn(store, parent, *offspring(1, queue="lost"), key="lost")).children[0].id
    await end_parent(store, transition.succeeded(parent, None, ()))
    assert await standing(store, lost) == (CANCELLED, "cancelled: parent job completed")
    claims = await claim_children(store)
    assert set(claims) == set(kept)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims.values()))
    assert await tally(store, parent.job_id) == (2, 2, 0)
    assert await state_of(store, parent.job_id) is JobState.SUCCEEDED


async def test_c8_the_end_goes_down_to_the_last_descendant(store: Store) -> None:
    """Children of children are cancelled with their own parents, which are cancelled; no cancelled one is woken."""
    parent, [child] = await start_parent(store, 1)
    [claim] = (await claim_children(store)).values()
    [grandchild] = (await spawn(store, claim, *offspring(1))).children
    await apply(store, as_parent(awaiting(claim)))
    [held] = (await claim_children(store)).values()
    [great, kept] = (
        *(await spawn(store, held, *offspring(1, queue="deep"))).children,
        *(await spawn(store, held, *offspring(1, queue="deep"), key="kept", on_end=OnEnd.KEEP)).children,
    )
    await end_parent(store, transition.died(parent, Reason.PERMANENT, A_FAILURE))
    assert await standing(store, child) == (CANCELLED, "cancelled: parent job died")
    assert await standing(store, grandchild.id) == (CANCELLED, "cancelled: parent job cancelled")
    assert await standing(store, great.id) == (CANCELLED, "cancelled: parent job cancelled")
    assert await state_of(store, kept.id) is JobState.READY
    assert [await tally(store, job_id) for job_id in (parent.job_id, child, grandchild.id)] == [(1, 0, 1)] * 3
    assert (await store.acknowledge([transition.succeeded(held, None, ())])).stale == (held,)


async def test_c8_an_end_in_an_earlier_attempts_family_counts_too(store: Store) -> None:
    """The attempt that ends has spawned nothing itself: the claim says that it is a parent."""
    parent, children = await start_parent(store)
    await apply(store, transition.released(parent))
    again = await claim_one(store, await employ(store))
    await apply(store, transition.succeeded(again, None, ()))
    assert {await standing(store, child) for child in children} == {(CANCELLED, "cancelled: parent job completed")}


async def test_c8_a_child_with_a_new_life_is_cancelled_with_its_parent_too(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.died(claim, Reason.PERMANENT, A_FAILURE))
    await store.requeue(only(child), By("ops"), 10)
    await end_parent(store, transition.succeeded(parent, None, ()))
    assert await standing(store, child) == (CANCELLED, "cancelled: parent job completed")
    assert await tally(store, parent.job_id) == (1, 0, 1)
    [seen] = await store.children(parent.job_id, KEY)
    assert seen.fate is JobState.CANCELLED


async def test_c8_a_cancelled_child_lets_go_of_its_unique_key(store: Store) -> None:
    parent = await start(store)
    await spawn(store, parent, *offspring(1, unique=a_key()))
    await end_parent(store, transition.succeeded(parent, None, ()))
    second = await enqueue(store, unique=a_key())
    assert await state_of(store, second) is JobState.READY


async def test_cancelling_the_last_child_wakes_the_parent(store: Store) -> None:
    parent, [child] = await start_parent(store, 1)
    await apply(store, awaiting(parent))
    assert await store.cancel(only(child), By("ops", "no need"), 10) == [child]
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    [seen] = await store.children(parent.job_id, KEY)
    assert (seen.fate, seen.error) == (JobState.CANCELLED, "no need")


async def test_cancelling_a_waiting_parent_cancels_its_children(store: Store, clock: ManualClock) -> None:
    parent, children, running, _ = await every_standing(store, clock)
    await apply(store, as_parent(awaiting(parent)))
    assert await store.cancel(only(parent.job_id), By("ops", "enough"), 10) == [parent.job_id]
    assert await standing(store, parent.job_id) == (CANCELLED, "cancelled: enough")
    for state in ("waiting", "paused", "running", "ready", "scheduled"):
        assert await standing(store, children[state]) == (CANCELLED, "cancelled: parent job cancelled")
    assert await state_of(store, children["succeeded"]) is JobState.SUCCEEDED
    assert (await store.acknowledge([transition.succeeded(running, None, ())])).stale == (running,)


async def test_cancelling_a_whole_tree_at_once(store: Store) -> None:
    """Parent and children match the filter alike; each is called off once."""
    parent, children = await start_parent(store)
    await apply(store, as_parent(awaiting(parent)))
    ids = await store.cancel(JobFilter(), By("ops", "all of it"), 100)
    assert sorted(ids) == sorted([parent.job_id, *children])
    assert await tally(store, parent.job_id) == (3, 0, 3)
    assert {(await standing(store, job_id))[0] for job_id in ids} == {CANCELLED}


async def test_c6_deleting_a_parent_cancels_its_active_children_and_leaves_the_finished(
    store: Store, clock: ManualClock
) -> None:
    parent, children, running, _ = await every_standing(store, clock)
    assert await store.delete(only(parent.job_id), By("ops"), 10) == [parent.job_id]
    assert await store.job(parent.job_id) is None
    assert await store.families(parent.job_id) == []
    assert await store.children(parent.job_id, KEY) == []
    for state in ("waiting", "paused", "running", "ready", "scheduled"):
        assert await standing(store, children[state]) == (CANCELLED, "cancelled: parent job deleted")
    assert await standing(store, children["succeeded"]) == (SUCCEEDED, "done")
    assert await state_of(store, children["dead"]) is JobState.DEAD
    for claim in (parent, running):
        assert (await store.acknowledge([as_parent(transition.succeeded(claim, None, ()))])).stale == (claim,)


async def test_c6_deleting_a_parent_spares_no_family(store: Store) -> None:
    """Nobody is left to whom a child that is kept could matter; a finished parent may still have such."""
    parent, [child] = await start_parent(store, 1, on_end=OnEnd.KEEP)
    await end_parent(store, transition.succeeded(parent, None, ()))
    assert await state_of(store, child) is JobState.READY
    await store.delete(only(parent.job_id), By("ops"), 10)
    assert await standing(store, child) == (CANCELLED, "cancelled: parent job deleted")


async def test_c6_deleting_the_last_child_wakes_the_parent(store: Store) -> None:
    parent, [child, other] = await start_parent(store, 2)
    claims = await claim_children(store)
    await apply(store, transition.succeeded(claims[other], "7", ()))
    await apply(store, awaiting(parent))
    await store.delete(JobFilter(queue=CHILDREN), By("ops"), 10)
    assert await standing(store, parent.job_id) == (READY, Reason.CHILDREN_SETTLED)
    assert [(seen.fate, seen.result, seen.error) for seen in await store.children(parent.job_id, KEY)] == [
        (JobState.CANCELLED, None, "job deleted"),
        (JobState.SUCCEEDED, "7", None),
    ]
    assert await store.job(child) is None
    assert await store.job(other) is None


async def test_c6_deleting_a_whole_tree_leaves_nothing(store: Store, clock: ManualClock) -> None:
    parent, *_ = await every_standing(store, clock)
    await apply(store, as_parent(awaiting(parent)))
    assert len(await store.delete(JobFilter(), By("ops"), 100)) == 8
    assert await store.jobs(JobFilter(), Page()) == []
    assert await store.counts() == []
    assert await store.children(parent.job_id, KEY) == []


async def test_ten_thousand_children_are_cancelled_with_their_parent(store: Store) -> None:
    parent, _ = await start_parent(store, MANY)
    assert len(await claim_children(store, MANY // 2)) == MANY // 2
    await end_parent(store, transition.succeeded(parent, None, ()))
    assert await tally(store, parent.job_id) == (MANY, 0, MANY)
    assert await store.claim(await employ(store), [Wanted(CHILDREN, 10)]) == []
