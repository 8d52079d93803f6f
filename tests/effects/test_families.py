"""G5 within a family: what a handler wrote, its own end, and what that means for its kin are one commit."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.builders.families import KEY, as_parent, awaiting, claim_children, standing, start_parent, tally
from tests.support.builders.jobs import apply, claim_one, employ
from tests.support.programs.effects import insertion, make_table, write, written

from perdure.app.connect import store_for
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.storage.port import Store


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """A store on a database with a table for handlers to write to."""
    store = store_for(url)
    await store.open()
    try:
        await store.migrate()
        make_table(url)
        yield store
    finally:
        await store.close()


async def test_g5_a_child_settles_its_family_with_what_it_wrote(store: Store, url: str) -> None:
    """No reader sees one without the other, and the commit wakes the parent."""
    parent, [child] = await start_parent(store, 1)
    await apply(store, awaiting(parent))
    claim = (await claim_children(store))[child]
    effects = await store.begin_effects()
    async with effects.block() as connection:
        await write(connection, insertion(url, "row"))
    assert (await standing(store, parent.job_id))[0] == "waiting"
    assert (await effects.commit_with(transition.succeeded(claim, '"brought"', ()))).applied == 1
    assert written(url) == ["row"]
    assert await tally(store, parent.job_id) == (1, 1, 0)
    assert await standing(store, parent.job_id) == ("ready", Reason.CHILDREN_SETTLED)
    [seen] = await store.children(parent.job_id, KEY)
    assert (seen.fate, seen.result) == (JobState.SUCCEEDED, '"brought"')


async def test_g5_a_child_that_has_lost_its_claim_changes_nothing(store: Store, url: str) -> None:
    parent, [child] = await start_parent(store, 1)
    claim = (await claim_children(store))[child]
    await apply(store, transition.released(claim))
    effects = await store.begin_effects()
    async with effects.block() as connection:
        await write(connection, insertion(url, "row"))
    assert (await effects.commit_with(transition.succeeded(claim, None, ()))).stale == (claim,)
    assert written(url) == []
    assert await tally(store, parent.job_id) == (1, 0, 0)
    assert (await standing(store, child))[0] == "ready"


async def test_g5_a_parent_cancels_its_children_with_what_it_wrote(store: Store, url: str) -> None:
    parent, children = await start_parent(store, 3)
    running = await claim_one(store, await employ(store), "children")
    effects = await store.begin_effects()
    async with effects.block() as connection:
        await write(connection, insertion(url, "row"))
    await effects.commit_with(as_parent(transition.succeeded(parent, None, ())))
    assert written(url) == ["row"]
    assert {await standing(store, child) for child in children} == {("cancelled", "cancelled: parent job completed")}
    assert (await store.acknowledge([transition.succeeded(running, None, ())])).stale == (running,)
    assert await tally(store, parent.job_id) == (3, 0, 3)
