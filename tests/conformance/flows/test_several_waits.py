"""Jobs that wait for several things at once: the first that comes wakes them, once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.support.builders.families import KEY, as_parent, claim_children, offspring, spawn, standing, start_parent
from tests.support.builders.jobs import (
    HOSTILE,
    MINUTE,
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
from tests.support.crew import SIZE, Crew, Ready

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store

PAID, SENT, CALLED = Awaits(event="paid"), Awaits(event="sent"), Awaits(event="called off")
CHILDREN = Awaits(family=KEY)
ROUNDS = 30


def waiting_for(claim: Claim, first: Awaits, *also: Awaits) -> Transition:
    """The job parks until one of these comes."""
    return transition.parked(claim, Reason.AWAITING_EVENT, None, first, None, also)


@pytest.mark.parametrize("event", ["paid", "sent", "called off"])
async def test_each_of_several_events_wakes_the_job(store: Store, event: str) -> None:
    claim = await start(store)
    await apply(store, waiting_for(claim, PAID, SENT, CALLED))
    view = await show(store, claim.job_id)
    assert (view.state, view.awaits) == (JobState.WAITING, "event:paid")
    assert view.also_awaits == ("event:sent", "event:called off")
    assert (await store.emit("something else", None, By("shop"))).woken == 0
    assert (await store.emit(event, None, By("shop"))).woken == 1
    view = await show(store, claim.job_id)
    assert (view.state, view.reason) == (JobState.READY, Reason.EVENT_CAME)
    assert (view.awaits, view.also_awaits) == (None, ())


async def test_a_later_event_wakes_the_job_only_if_it_waits_again(store: Store) -> None:
    claim = await start(store)
    await apply(store, waiting_for(claim, PAID, SENT, CALLED))
    assert (await store.emit("sent", None, By("shop"))).woken == 1
    assert (await store.emit("paid", None, By("shop"))).woken == 0
    again = await claim_one(store, await employ(store))
    await apply(store, waiting_for(again, CALLED))
    assert (await store.emit("sent", None, By("shop"))).woken == 0
    assert (await store.emit("called off", None, By("shop"))).woken == 1
    assert [one.job_id for one in await claim_some(store, await employ(store))] == [claim.job_id]


@pytest.mark.parametrize("event", ["paid", "sent"])
async def test_one_that_has_come_already_makes_the_job_ready_at_once(store: Store, event: str) -> None:
    await store.emit(event, None, By("shop"))
    claim = await start(store)
    await apply(store, waiting_for(claim, PAID, SENT))
    assert await standing(store, claim.job_id) == ("ready", Reason.EVENT_CAME)
    assert (await show(store, claim.job_id)).also_awaits == ()


@pytest.mark.parametrize("things", [(PAID, CHILDREN), (CHILDREN, PAID)])
async def test_an_event_beside_children(store: Store, things: tuple[Awaits, ...]) -> None:
    """Whichever comes first wakes the parent, and the other is there when it looks."""
    parent, [child] = await start_parent(store, 1)
    await apply(store, as_parent(waiting_for(parent, *things)))
    assert (await store.emit("paid", None, By("shop"))).woken == 1
    again = await claim_one(store, await employ(store))
    await apply(store, waiting_for(again, SENT, CHILDREN, CALLED))
    claims = await claim_children(store)
    await apply(store, transition.succeeded(claims[child], None, ()))
    assert await standing(store, parent.job_id) == ("ready", Reason.CHILDREN_SETTLED)
    again = await claim_one(store, await employ(store))
    await apply(store, waiting_for(again, SENT, CHILDREN))
    assert await standing(store, parent.job_id) == ("ready", Reason.CHILDREN_SETTLED)


async def test_two_families_that_are_settled_together_wake_the_parent_once(store: Store) -> None:
    parent, _ = await start_parent(store, 1)
    await spawn(store, parent, *offspring(1), key="others")
    await apply(store, as_parent(waiting_for(parent, CHILDREN, Awaits(family="others"))))
    claims = await claim_children(store)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims.values()))
    assert await standing(store, parent.job_id) == ("ready", Reason.CHILDREN_SETTLED)
    assert [one.job_id for one in await claim_some(store, await employ(store))] == [parent.job_id]


async def test_the_other_of_two_families_wakes_the_parent(store: Store) -> None:
    parent, _ = await start_parent(store, 1)
    await spawn(store, parent, *offspring(1, queue="others"), key="others")
    await apply(store, as_parent(waiting_for(parent, CHILDREN, Awaits(family="others"))))
    claim = await claim_one(store, await employ(store), "others")
    await apply(store, transition.succeeded(claim, None, ()))
    assert await standing(store, parent.job_id) == ("ready", Reason.CHILDREN_SETTLED)


async def test_several_waits_may_come_due(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, MINUTE, PAID, None, (SENT,)))
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert (await store.emit("sent", None, By("shop"))).woken == 0
    assert await standing(store, claim.job_id) == ("ready", Reason.DUE)


@pytest.mark.parametrize("command", ["run_now", "cancel", "delete"])
async def test_who_was_taken_out_of_its_sleep_is_woken_by_nothing(store: Store, command: str) -> None:
    claim = await start(store)
    await apply(store, waiting_for(claim, PAID, SENT))
    if command == "run_now":
        await store.run_now(only(claim.job_id), By("ops"), 10)
    elif command == "cancel":
        await store.cancel(only(claim.job_id), By("ops", "enough"), 10)
    else:
        await store.delete(only(claim.job_id), By("ops"), 10)
    before = await store.job(claim.job_id)
    assert (await store.emit("sent", None, By("shop"))).woken == 0
    assert await store.job(claim.job_id) == before


async def test_a_sleeper_whose_unique_key_is_held_waits_for_the_key_alone(store: Store, clock: ManualClock) -> None:
    claim = await start(store, unique=a_key(states=[JobState.READY]))
    await apply(store, waiting_for(claim, PAID, SENT))
    await enqueue(store, unique=a_key(states=[JobState.READY]))
    assert (await store.emit("sent", None, By("shop"))).woken == 0
    view = await show(store, claim.job_id)
    assert (view.state, view.awaits, view.also_awaits) == (JobState.PAUSED, None, ())
    assert (await store.emit("paid", None, By("shop"))).woken == 0
    await claim_one(store, await employ(store))
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert await state_of(store, claim.job_id) is JobState.READY


async def test_names_are_kept_to_the_letter(store: Store) -> None:
    for event in HOSTILE:
        claim = await start(store)
        await apply(store, waiting_for(claim, PAID, *(Awaits(event=name) for name in HOSTILE)))
        assert (await show(store, claim.job_id)).also_awaits == tuple(f"event:{name}" for name in HOSTILE)
        other = await start(store)
        assert (await store.emit(f"{event} ", None, By("shop"))).woken == 0
        assert await state_of(store, claim.job_id) is JobState.WAITING
        await apply(store, transition.succeeded(other, None, ()))
        await store.delete(only(claim.job_id), By("ops"), 1)


async def test_a_large_batch_may_wait_for_a_great_many_events(store: Store) -> None:
    """More than one transaction of a server has room to lock."""
    await store.insert([a_job() for _ in range(200)])
    claims = await claim_some(store, await employ(store), 200)
    moves = [
        waiting_for(claim, *(Awaits(event=f"{number} of {claim.job_id}") for number in range(100))) for claim in claims
    ]
    await apply(store, *moves)
    for claim in (claims[0], claims[-1]):
        assert (await store.emit(f"99 of {claim.job_id}", None, By("shop"))).woken == 1


async def test_emitting_several_events_while_jobs_go_to_sleep_for_them_wakes_each_once(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Two processes park jobs, each for two events, and two others emit one of these, each time at once."""
    store = real_time_store
    await store.insert([a_job() for _ in range(4 * ROUNDS)])
    claims = await claim_some(store, await employ(store), 4 * ROUNDS)
    roles = [(engine_url, claims[number::2] if number < 2 else [], number) for number in range(SIZE)]
    told = await asyncio.to_thread(crew.together, park_or_emit, roles)
    assert sum(sum(woken) for woken in told) <= len(claims)
    views = [await show(store, claim.job_id) for claim in claims]
    assert Counter((view.state, view.reason) for view in views) == {(JobState.READY, Reason.EVENT_CAME): len(claims)}
    again = await claim_some(store, await employ(store), 2 * len(claims))
    assert Counter(claim.job_id for claim in again) == Counter(claim.job_id for claim in claims)


def park_or_emit(ready: Ready, url: str, claims: list[Claim], number: int) -> list[int]:
    """In each round, together with the others: put two jobs to sleep for two events, or emit one of them."""

    async def work() -> list[int]:
        store = store_for(url)
        await store.open()
        woken = []
        try:
            await store.emitted("nothing")  # connected
            for turn in range(ROUNDS):
                ready()
                things = Awaits(event=f"e{turn} of 2"), Awaits(event=f"e{turn} of 3")
                for claim in claims[2 * turn : 2 * turn + 2]:
                    await apply(store, waiting_for(claim, *(things if number else reversed(things))))
                if not claims:
                    woken.append((await store.emit(f"e{turn} of {number}", None, By("crew"))).woken)
        finally:
            await store.close()
        return woken

    return asyncio.run(work())
