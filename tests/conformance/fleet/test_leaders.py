"""LeaderStore: a lease with a term."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.conftest import OpenStore
from tests.support.builders.jobs import HOSTILE, INSTANT, SECOND

from perdure.clock import ManualClock
from perdure.domain.leadership import Lead
from perdure.storage.port import Store

LEASE = timedelta(seconds=30)


async def test_the_first_to_ask_leads(store: Store, clock: ManualClock) -> None:
    assert await store.leaders() == []
    assert await store.lead("reports", "a", LEASE) == Lead(True, 1, "a", LEASE)
    [view] = await store.leaders()
    assert (view.name, view.holder, view.term) == ("reports", "a", 1)
    assert (view.since, view.until) == (clock.now(), clock.now() + LEASE)


async def test_the_others_learn_who_leads_and_for_how_long(store: Store, clock: ManualClock) -> None:
    await store.lead("reports", "a", LEASE)
    clock.move(10 * SECOND)
    assert await store.lead("reports", "b", 5 * LEASE) == Lead(False, 1, "a", 20 * SECOND)
    [view] = await store.leaders()
    assert view.holder == "a"


async def test_a_leader_that_asks_again_stays_in_its_term(store: Store, clock: ManualClock) -> None:
    began = clock.now()
    for _ in range(5):
        assert await store.lead("reports", "a", LEASE) == Lead(True, 1, "a", LEASE)
        clock.move(LEASE - INSTANT)
    [view] = await store.leaders()
    assert (view.term, view.since, view.until) == (1, began, clock.now() + INSTANT)


async def test_an_expired_lease_is_taken_over_in_a_new_term(store: Store, clock: ManualClock) -> None:
    await store.lead("reports", "a", LEASE)
    clock.move(LEASE)
    assert await store.leaders() == []
    assert await store.lead("reports", "b", LEASE) == Lead(True, 2, "b", LEASE)
    assert await store.lead("reports", "a", LEASE) == Lead(False, 2, "b", LEASE)
    [view] = await store.leaders()
    assert (view.holder, view.since) == ("b", clock.now())


async def test_stepping_down_frees_the_lead_at_once_and_terms_go_on_rising(store: Store) -> None:
    for term, holder in enumerate(("a", "b", "a", "c"), 1):
        assert await store.lead("reports", holder, LEASE) == Lead(True, term, holder, LEASE)
        await store.step_down("reports", holder)
        assert await store.leaders() == []


async def test_a_leader_cannot_step_down_for_another(store: Store, clock: ManualClock) -> None:
    await store.lead("reports", "a", LEASE)
    await store.step_down("reports", "b")
    await store.step_down("unheard of", "a")
    [view] = await store.leaders()
    assert (view.holder, view.until) == ("a", clock.now() + LEASE)
    clock.move(LEASE)
    await store.lead("reports", "b", LEASE)
    await store.step_down("reports", "a")
    assert [view.holder for view in await store.leaders()] == ["b"]


async def test_leads_are_kept_apart_by_name(store: Store) -> None:
    for name in ("b", *HOSTILE, "a"):
        assert (await store.lead(name, f"leader of {name}", LEASE)).is_ours
    listed = await store.leaders()
    assert [view.name for view in listed] == sorted(["b", *HOSTILE, "a"], key=str.encode)
    assert all(view.holder == f"leader of {view.name}" for view in listed)


async def test_of_many_that_ask_at_once_one_leads(store: Store, other_store: OpenStore, clock: ManualClock) -> None:
    stores = [store, *[await other_store() for _ in range(3)]]
    for term in range(1, 6):
        holders = [f"{number}-{term}" for number in range(len(stores))]
        leads = await asyncio.gather(
            *(one.lead("reports", holder, LEASE) for one, holder in zip(stores, holders, strict=True))
        )
        assert sum(lead.is_ours for lead in leads) == 1
        assert len({lead.holder for lead in leads}) == 1
        assert {lead.term for lead in leads} == {term}
        clock.move(LEASE)


async def test_a_lease_from_before_the_clock_was_put_back_delays_no_leader(store: Store, clock: ManualClock) -> None:
    long = timedelta(hours=1)
    assert (await store.lead("n", "anna", long)).is_ours
    assert not (await store.lead("n", "ben", LEASE)).is_ours, "a longer lease than ours is a lease all the same"
    clock.move(-timedelta(minutes=10))
    taken = await store.lead("n", "ben", LEASE)
    assert (taken.is_ours, taken.holder, taken.term) == (True, "ben", 2)
