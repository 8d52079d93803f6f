"""FlowStore, unique children: one whose key is held is joined to the job that holds it, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.families import (
    CHILDREN,
    KEY,
    as_parent,
    awaiting,
    claim_children,
    end_parent,
    offspring,
    standing,
    tally,
)
from tests.support.builders.jobs import (
    A_FAILURE,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    only,
    show,
    start,
    state_of,
)

from perdure.domain.flows.flow import Child, NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, NewJob, OnConflict
from perdure.domain.jobs.states import ACTIVE, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import DuplicateJobError, StepError
from perdure.storage.port import Store

HOLDERS = "holders"


def unique_child(on_conflict: OnConflict = OnConflict.RETURN, **changes: Any) -> NewJob:
    [child] = offspring(1, unique=a_key(on_conflict=on_conflict), **changes)
    return child


async def holder_of(store: Store, **changes: Any) -> JobId:
    """A job that holds the key."""
    return await enqueue(store, **{"queue": HOLDERS, "unique": a_key()} | changes)


async def run_holder(store: Store) -> Claim:
    return await claim_one(store, await employ(store, name="other"), HOLDERS)


async def join(store: Store, *children: NewJob, **terms: Any) -> Claim:
    """A running parent that has asked for these."""
    parent = await start(store, kind="ingest")
    assert await store.spawn(parent, NewFamily(key=KEY, children=children or (unique_child(),), **terms))
    return parent


async def test_a_child_whose_key_is_held_is_joined_to_the_holder(store: Store) -> None:
    holder = await holder_of(store)
    [plain] = offspring(1)
    joined = unique_child()
    parent = await join(store, plain, joined)
    await apply(store, awaiting(parent))
    assert await tally(store, parent.job_id) == (2, 0, 0)
    assert await store.children(parent.job_id, KEY) == [
        Child(number=0, job_id=plain.id, kind="load", fate=None),
        Child(number=1, job_id=holder, kind="load", fate=None, joined=True),
    ]
    assert await store.job(joined.id) is None
    assert (await show(store, holder)).parent is None

    await apply(store, transition.succeeded((await claim_children(store))[plain.id], "1", ()))
    await apply(store, transition.succeeded(await run_holder(store), "2", ("slow",)))
    assert await state_of(store, parent.job_id) is JobState.WAITING
    assert await store.settle_joined([holder, plain.id]) == 1
    assert await standing(store, parent.job_id) == ("ready", "children settled")
    [_, child] = await store.children(parent.job_id, KEY)
    assert (child.fate, child.result, child.warnings) == (JobState.SUCCEEDED, "2", ("slow",))
    assert await store.settle_joined() == await store.settle_joined([holder]) == 0


async def test_a_job_that_was_final_when_it_was_joined_counts_at_once(store: Store) -> None:
    key = a_key(states=ACTIVE | {JobState.SUCCEEDED})
    holder = await holder_of(store, unique=key)
    await apply(store, transition.succeeded(await run_holder(store), '"old"', ()))
    parent = await join(store, a_job(queue=CHILDREN, unique=key))
    await apply(store, awaiting(parent))
    assert await store.settle_joined() == 1
    assert await state_of(store, parent.job_id) is JobState.READY
    [child] = await store.children(parent.job_id, KEY)
    assert (child.job_id, child.result) == (holder, '"old"')


async def test_several_parents_wait_for_one_job_and_the_end_of_one_leaves_it_alone(store: Store) -> None:
    holder = await holder_of(store)
    waiting, ending = await join(store), await join(store)
    await apply(store, awaiting(waiting))
    await end_parent(store, transition.succeeded(ending, None, ()))
    assert await state_of(store, holder) is JobState.READY
    await apply(store, transition.succeeded(await run_holder(store), "2", ()))
    assert await store.settle_joined() == 2
    assert await state_of(store, waiting.job_id) is JobState.READY
    assert await state_of(store, ending.job_id) is JobState.SUCCEEDED


async def test_a_parent_that_is_deleted_leaves_the_job_alone_and_nothing_behind(store: Store) -> None:
    holder = await holder_of(store)
    parent = await join(store)
    assert await store.delete(only(parent.job_id), By("test"), 1) == [parent.job_id]
    assert await state_of(store, holder) is JobState.READY
    await apply(store, transition.succeeded(await run_holder(store), None, ()))
    assert await store.settle_joined() == 0


@pytest.mark.parametrize("way", ["dies", "cancelled", "deleted", "purged"])
async def test_a_job_that_does_not_succeed_counts_as_failed(store: Store, way: str) -> None:
    holder = await holder_of(store)
    parent = await join(store)
    await apply(store, awaiting(parent))
    if way == "dies":
        await apply(store, transition.died(await run_holder(store), Reason.PERMANENT, A_FAILURE))
    elif way == "cancelled":
        await store.cancel(only(holder), By("test", "not wanted"), 1)
    elif way == "purged":
        await apply(store, transition.succeeded(await run_holder(store), "1", ()))
        await store.purge(only(holder), By("test"), 1)
    else:
        await store.delete(only(holder), By("test"), 1)
    await store.settle_joined()
    [child] = await store.children(parent.job_id, KEY)
    fate = JobState.DEAD if way == "dies" else JobState.CANCELLED
    said = {"dies": str(A_FAILURE), "cancelled": "not wanted"}.get(way, "job deleted")
    assert (child.fate, child.error) == (fate, said)
    assert await tally(store, parent.job_id) == (1, 0, 1)
    assert await state_of(store, parent.job_id) is JobState.READY


async def test_a_failed_job_that_is_requeued_is_waited_for_again(store: Store) -> None:
    holder = await holder_of(store)
    parent = await join(store)
    await apply(store, transition.died(await run_holder(store), Reason.PERMANENT, A_FAILURE))
    assert (await store.settle_joined(), await tally(store, parent.job_id)) == (1, (1, 0, 1))
    assert await store.requeue(only(holder), By("test"), 1) == [holder]
    assert await tally(store, parent.job_id) == (1, 0, 0)
    await apply(store, awaiting(parent))
    assert await state_of(store, parent.job_id) is JobState.WAITING
    await apply(store, transition.succeeded(await run_holder(store), "3", ()))
    assert (await store.settle_joined(), await tally(store, parent.job_id)) == (1, (1, 1, 0))
    assert await state_of(store, parent.job_id) is JobState.READY
    await store.requeue(only(holder), By("test"), 1)
    assert await tally(store, parent.job_id) == (1, 1, 0), "a success counts for good"


async def test_the_same_key_twice_in_a_family_is_one_job(store: Store) -> None:
    first, second = unique_child(), unique_child()
    parent = await join(store, first, second)
    await apply(store, awaiting(parent))
    children = await store.children(parent.job_id, KEY)
    assert [(child.job_id, child.joined) for child in children] == [(first.id, False), (first.id, True)]
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, "5", ()))
    assert (await store.settle_joined(), await tally(store, parent.job_id)) == (1, (2, 2, 0))
    assert await state_of(store, parent.job_id) is JobState.READY
    assert [child.result for child in await store.children(parent.job_id, KEY)] == ["5", "5"]


async def test_a_child_that_is_to_be_refused_is_and_nothing_is_made(store: Store) -> None:
    holder = await holder_of(store)
    parent = await start(store)
    [plain] = offspring(1)
    family = NewFamily(key=KEY, children=(plain, unique_child(OnConflict.REJECT)))
    with pytest.raises(DuplicateJobError) as refused:
        await store.spawn(parent, family)
    assert (refused.value.job_id, await store.job(plain.id)) == (holder, None)
    assert await store.family(parent.job_id, KEY) is None
    await store.delete(only(holder), By("test"), 1)
    assert await store.spawn(parent, family)


async def test_a_waiting_job_is_given_the_childs_arguments_and_joined(store: Store) -> None:
    holder = await holder_of(store)
    parent = await join(store, unique_child(OnConflict.REPLACE, args='{"name":"Eve"}'))
    [child] = await store.children(parent.job_id, KEY)
    assert (child.job_id, child.joined) == (holder, True)
    assert (await show(store, holder)).args == '{"name":"Eve"}'


async def test_a_running_job_passes_its_key_on_to_the_child(store: Store) -> None:
    await holder_of(store)
    await run_holder(store)
    newcomer = unique_child(OnConflict.REPLACE)
    parent = await join(store, newcomer)
    assert [child.job_id for child in await store.children(parent.job_id, KEY)] == [newcomer.id]
    assert await state_of(store, newcomer.id) is JobState.READY


async def test_a_parent_is_not_joined_to_itself_nor_to_one_that_waits_for_it(store: Store) -> None:
    top = await start(store, unique=a_key())
    with pytest.raises(StepError, match="would wait for itself: the unique key of child 0"):
        await store.spawn(top, NewFamily(key=KEY, children=(unique_child(),)))
    [child] = offspring(1)
    assert await store.spawn(top, NewFamily(key=KEY, children=(child,)))
    middle = (await claim_children(store))[child.id]
    family = NewFamily(key=KEY, children=(*offspring(1), unique_child()))
    with pytest.raises(StepError, match=f"child 1 .load. is held by job {top.job_id}"):
        await store.spawn(middle, family)
    assert await store.family(child.id, KEY) is None
    assert await claim_children(store) == {}


async def test_two_parents_are_not_joined_to_each_other(store: Store) -> None:
    """One, which has a key, waits for the other by way of a third job; the other may not come to wait for the first."""
    one = await start(store, unique=a_key("one"))
    third = a_job(queue=CHILDREN, unique=a_key("third"))
    other = await start(store)
    assert await store.spawn(other, NewFamily(key=KEY, children=(third,)))
    assert await store.spawn(one, NewFamily(key=KEY, children=(a_job(queue=CHILDREN, unique=a_key("third")),)))
    running = (await claim_children(store))[third.id]
    with pytest.raises(StepError, match="would wait for itself"):
        await store.spawn(running, NewFamily(key=KEY, children=(a_job(queue=CHILDREN, unique=a_key("one")),)))
    await apply(store, as_parent(transition.succeeded(running, None, ())))
    await store.settle_joined()
    assert await tally(store, one.job_id) == await tally(store, other.job_id) == (1, 1, 0)


async def test_children_that_are_joined_are_spawned_once(store: Store) -> None:
    await holder_of(store)
    parent = await start(store)
    family = NewFamily(key=KEY, children=(unique_child(),))
    assert await store.spawn(parent, family)
    assert await store.spawn(parent, family)
    assert len(await store.children(parent.job_id, KEY)) == 1
    assert await claim_some(store, await employ(store), 10, CHILDREN) == []
