"""FlowStore, parents and children: spawned once, counted once, woken once (C5, C7)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.builders.families import (
    CHILDREN,
    KEY,
    claim_children,
    end_parent,
    family_of,
    offspring,
    spawn,
    start_parent,
    tally,
)
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOSTILE,
    HOUR,
    MINUTE,
    a_job,
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

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Child, FamilyView, NewFamily, OnEnd
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import ConflictError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

HOSTILE_WARNINGS = ("step shots gave up", *HOSTILE)


async def test_c5_children_come_in_with_their_family(store: Store) -> None:
    parent = await start(store)
    children = (*offspring(2), a_job(kind="tidy", queue=CHILDREN, delay=HOUR))
    await spawn(store, parent, *children, quorum=2, on_end=OnEnd.KEEP)
    family = FamilyView(key=KEY, total=3, succeeded=0, failed=0, quorum=2, on_end=OnEnd.KEEP)
    assert await store.family(parent.job_id, KEY) == family
    assert await store.children(parent.job_id, KEY) == [
        Child(number=number, job_id=job.id, kind=job.kind, fate=None) for number, job in enumerate(children)
    ]
    assert [await state_of(store, job.id) for job in children] == [JobState.READY, JobState.READY, JobState.SCHEDULED]
    assert {(await show(store, job.id)).parent for job in children} == {parent.job_id}
    claims = await claim_children(store)
    assert {claim.parent for claim in claims.values()} == {parent.job_id}
    assert not any(claim.is_parent for claim in claims.values())


async def test_c5_spawning_twice_is_spawning_once(store: Store) -> None:
    """A handler runs again from its beginning; the children that it makes then are not these."""
    parent, children = await start_parent(store)
    assert await store.spawn(parent, NewFamily(key=KEY, children=offspring(5), quorum=1))
    assert [child.job_id for child in await store.children(parent.job_id, KEY)] == children
    assert (await family_of(store, parent.job_id)).quorum is None
    assert len(await store.jobs(JobFilter(), Page())) == 1 + len(children)


async def test_the_next_attempt_knows_that_it_is_a_parent(store: Store) -> None:
    parent, _ = await start_parent(store)
    assert not parent.is_parent
    await apply(store, transition.released(parent))
    assert (await claim_one(store, await employ(store))).is_parent


async def test_the_orphan_of_a_family_keeps_its_kin(store: Store) -> None:
    """Whoever rescues it settles its end as its worker would have."""
    parent, [child] = await start_parent(store, 1)
    worker_id = await employ(store)
    [claim] = await claim_some(store, worker_id, 1, CHILDREN)
    await spawn(store, claim, *offspring(1))
    await store.retire(worker_id)
    [orphan] = await store.orphans(10)
    assert (orphan.claim.job_id, orphan.claim.parent, orphan.claim.is_parent) == (child, parent.job_id, True)


async def test_families_come_in_the_order_in_which_they_were_made(store: Store) -> None:
    parent = await start(store)
    for key in ("z", "y", "a", *HOSTILE):
        await spawn(store, parent, *offspring(1), key=key)
    assert [family.key for family in await store.families(parent.job_id)] == ["z", "y", "a", *HOSTILE]
    assert [len(await store.children(parent.job_id, key)) for key in HOSTILE] == [1] * len(HOSTILE)
    assert await store.families((await store.children(parent.job_id, "z"))[0].job_id) == []
    assert await store.family(parent.job_id, "b") is None


async def test_children_are_shown_piece_by_piece(store: Store) -> None:
    parent, children = await start_parent(store, 7)
    seen = [await store.children(parent.job_id, KEY, first, 3) for first in (0, 3, 6, 9)]
    assert [[child.number for child in piece] for piece in seen] == [[0, 1, 2], [3, 4, 5], [6], []]
    assert [child.job_id for piece in seen for child in piece] == children


@pytest.mark.parametrize("loss", ["released", "cancelled", "deleted"])
async def test_c7_a_parent_that_has_lost_its_claim_spawns_nothing(store: Store, loss: str) -> None:
    """A parent deleted during its execution cannot leave children behind."""
    parent = await start(store)
    if loss == "deleted":
        assert await store.delete(only(parent.job_id), By("ops"), 10) == [parent.job_id]
    elif loss == "cancelled":
        await apply(store, transition.cancelled(parent, None))
    else:
        await apply(store, transition.released(parent))
    children = offspring(3)
    assert not await store.spawn(parent, NewFamily(key=KEY, children=children))
    assert await store.family(parent.job_id, KEY) is None
    assert await store.children(parent.job_id, KEY) == []
    assert await store.jobs(JobFilter(queue=CHILDREN), Page()) == []


async def test_a_child_whose_id_is_taken_stops_the_whole_family(store: Store) -> None:
    parent = await start(store)
    taken = await enqueue(store, queue=CHILDREN)
    first, second = offspring(2)
    for children in ((first, replace(second, id=taken)), (first, replace(second, id=first.id))):
        with pytest.raises(ConflictError):
            await store.spawn(parent, NewFamily(key=KEY, children=children))
    assert await store.family(parent.job_id, KEY) is None
    assert await store.job(first.id) is None
    assert (await show(store, taken)).parent is None
    await spawn(store, parent, first, second)


async def test_an_end_is_written_into_the_family(store: Store) -> None:
    parent, [good, plain, bad, off] = await start_parent(store, 4)
    claims = await claim_children(store)
    await apply(
        store,
        transition.succeeded(claims[good], '{"rows":3}', ("slow",)),
        transition.succeeded(claims[plain], None, ()),
        transition.died(claims[bad], Reason.EXHAUSTED, A_FAILURE),
        transition.cancelled(claims[off], "not wanted"),
    )
    told = await store.children(parent.job_id, KEY)
    assert [(child.fate, child.result, child.error) for child in told] == [
        (JobState.SUCCEEDED, '{"rows":3}', None),
        (JobState.SUCCEEDED, None, None),
        (JobState.DEAD, None, "builtins.ValueError: no such host"),
        (JobState.CANCELLED, None, "not wanted"),
    ]
    assert [child.warnings for child in told] == [("slow",), (), (), ()]
    assert await tally(store, parent.job_id) == (4, 2, 2)


async def test_what_is_no_end_is_not_counted(store: Store) -> None:
    parent, children = await start_parent(store, 4)
    held = await claim_children(store)
    claims = [held[child] for child in children]
    await apply(
        store,
        transition.retrying(claims[0], Reason.FAILED, A_FAILURE, MINUTE),
        transition.released(claims[1]),
        transition.waiting(claims[2], Reason.SNOOZED, MINUTE),
        transition.paused(claims[3], Reason.PAUSED, None),
    )
    assert await tally(store, parent.job_id) == (4, 0, 0)
    assert (await store.acknowledge([transition.succeeded(claims[0], None, ())])).stale == (claims[0],)
    assert await tally(store, parent.job_id) == (4, 0, 0)


async def test_ends_of_unrelated_jobs_touch_no_family(store: Store) -> None:
    parent, children = await start_parent(store)
    stranger = await start(store)
    await apply(store, transition.succeeded(stranger, None, ()))
    assert await tally(store, parent.job_id) == (3, 0, 0)
    assert {await state_of(store, child) for child in children} == {JobState.READY}


@pytest.mark.parametrize("how", ["purge", "prune"])
async def test_a_parent_that_is_forgotten_takes_its_families_along(store: Store, clock: ManualClock, how: str) -> None:
    """Its children are jobs of their own; one that was kept ends as if it had no parent."""
    parent, [child] = await start_parent(store, 1, on_end=OnEnd.KEEP)
    await end_parent(store, transition.succeeded(parent, None, ()))
    clock.move(2 * DAY)
    if how == "purge":
        await store.purge(only(parent.job_id), By("ops"), 10)
    else:
        await store.prune(Keep(succeeded=DAY), 10)
    assert await store.families(parent.job_id) == []
    assert await store.children(parent.job_id, KEY) == []
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, None, ()))
    assert await state_of(store, child) is JobState.SUCCEEDED


@pytest.mark.parametrize("how", ["purge", "prune"])
async def test_what_a_child_brought_outlives_the_child(store: Store, clock: ManualClock, how: str) -> None:
    parent, [child] = await start_parent(store, 1)
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, '"kept"', HOSTILE_WARNINGS))
    clock.move(2 * DAY)
    if how == "purge":
        await store.purge(only(child), By("ops"), 10)
    else:
        await store.prune(Keep(succeeded=DAY), 10)
    assert await store.job(child) is None
    [seen] = await store.children(parent.job_id, KEY)
    assert (seen.fate, seen.result, seen.warnings) == (JobState.SUCCEEDED, '"kept"', HOSTILE_WARNINGS)
    assert await tally(store, parent.job_id) == (1, 1, 0)


async def test_the_fates_of_children_come_in_order_without_what_they_brought(store: Store) -> None:
    parent, children = await start_parent(store, 3)
    claims = await claim_children(store)
    await apply(
        store,
        transition.succeeded(claims[children[0]], '"large"', HOSTILE_WARNINGS),
        transition.died(claims[children[2]], Reason.PERMANENT, A_FAILURE),
    )
    whole = await store.children(parent.job_id, KEY)
    fates = await store.fates(parent.job_id, KEY)
    assert fates == [replace(child, result=None, error=None, warnings=()) for child in whole]
    assert [child.fate for child in fates] == [JobState.SUCCEEDED, None, JobState.DEAD]
    assert await store.fates(parent.job_id, KEY, 2) == fates[:2]
    assert await store.fates(parent.job_id, "another") == []
