"""FlowStore, events: emitted once, kept permanently, and missed by no waiting job."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    HOSTILE,
    HOUR,
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
from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits, Emission
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError
from perdure.storage.port import Store

PAID = "order 42 paid"
ROUNDS = 30


def waiting_for(claim: Claim, event: str = PAID) -> Transition:
    """The job parks until the event comes."""
    return transition.parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=event), None)


async def sleeper(store: Store, event: str = PAID) -> JobId:
    """A job that waits for an event; the queue must be empty."""
    claim = await start(store)
    await apply(store, waiting_for(claim, event))
    return claim.job_id


async def test_the_first_payload_is_kept_for_good(store: Store, clock: ManualClock) -> None:
    assert await store.emitted(PAID) is None
    at = clock.now()
    assert await store.emit(PAID, '{"by":"Ada"}', By("shop")) == Emission(PAID, '{"by":"Ada"}', at, is_first=True)
    clock.move(HOUR)
    assert await store.emit(PAID, '{"by":"Eve"}', By("crook")) == Emission(PAID, '{"by":"Ada"}', at, is_first=False)
    assert await store.emitted(PAID) == Emission(PAID, '{"by":"Ada"}', at, is_first=False)


async def test_an_event_may_come_without_a_payload(store: Store) -> None:
    assert (await store.emit(PAID, None, By("shop"))).is_first
    again = await store.emit(PAID, "1", By("shop"))
    assert (again.is_first, again.payload) == (False, None)


async def test_emitting_before_waiting_is_no_race(store: Store) -> None:
    """The job is ready at once: it costs no attempt, and it does not sleep for what is there."""
    await store.emit(PAID, None, By("shop"))
    job_id = await sleeper(store)
    view = await show(store, job_id)
    assert (view.state, view.reason, view.awaits) == (JobState.READY, Reason.EVENT_CAME, None)
    assert (view.failures, view.crashes) == (0, 0)
    assert (await claim_one(store, await employ(store))).job_id == job_id


async def test_a_waiting_job_is_woken_once(store: Store) -> None:
    job_id = await sleeper(store)
    view = await show(store, job_id)
    assert (view.state, view.reason) == (JobState.WAITING, Reason.AWAITING_EVENT)
    assert (view.awaits, view.due_at, view.worker) == (f"event:{PAID}", None, None)
    emission = await store.emit(PAID, "1", By("shop"))
    assert (emission.is_first, emission.woken) == (True, 1)
    view = await show(store, job_id)
    assert (view.state, view.reason, view.awaits) == (JobState.READY, Reason.EVENT_CAME, None)
    assert (await store.emit(PAID, "1", By("shop"))).woken == 0
    assert [claim.job_id for claim in await claim_some(store, await employ(store))] == [job_id]


async def test_all_waiting_jobs_are_woken_together_and_no_others(store: Store, other_store: OpenStore) -> None:
    sleepers = [await sleeper(store) for _ in range(20)]
    others = [await sleeper(store, f"{PAID} twice"), await sleeper(store, "order")]
    asleep = await start(store)
    await apply(store, transition.waiting(asleep, Reason.SLEEPING, HOUR))
    emission = await (await other_store()).emit(PAID, None, By("shop"))
    assert emission.woken == len(sleepers)
    assert {await state_of(store, job_id) for job_id in sleepers} == {JobState.READY}
    assert {await state_of(store, job_id) for job_id in (*others, asleep.job_id)} == {JobState.WAITING}


async def test_a_batch_may_wait_for_many_events_and_some_have_come(store: Store) -> None:
    events = [f"event {number}" for number in range(10)]
    for event in events[::2]:
        await store.emit(event, None, By("shop"))
    await store.insert([a_job() for _ in events])
    claims = await claim_some(store, await employ(store))
    await apply(store, *(waiting_for(claim, event) for claim, event in zip(claims, events, strict=True)))
    states = [await state_of(store, claim.job_id) for claim in claims]
    assert states == [JobState.READY, JobState.WAITING] * 5
    assert [(await store.emit(event, None, By("shop"))).woken for event in events] == [0, 1] * 5


@pytest.mark.parametrize("event", HOSTILE)
async def test_names_and_payloads_are_kept_to_the_letter(store: Store, event: str) -> None:
    job_id = await sleeper(store, event)
    assert (await show(store, job_id)).awaits == f"event:{event}"
    assert (await store.emit(event, event, By(event))).woken == 1
    kept = await store.emitted(event)
    assert kept is not None
    assert (kept.event, kept.payload) == (event, event)


async def test_a_name_that_cannot_be_kept_is_refused(store: Store) -> None:
    with pytest.raises(ArgumentError, match=r"event.*NUL"):
        await store.emit("a\0b", None, By("shop"))


async def test_a_wait_for_an_event_may_come_due(store: Store, clock: ManualClock) -> None:
    """The event that comes too late wakes no job, even if the job sleeps again, for something else."""
    claim = await start(store)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, MINUTE, Awaits(event=PAID), None))
    assert (await show(store, claim.job_id)).due_at == clock.now() + MINUTE
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    view = await show(store, claim.job_id)
    assert (view.state, view.reason, view.awaits) == (JobState.READY, Reason.DUE, None)
    again = await claim_one(store, await employ(store))
    await apply(store, waiting_for(again, "shop closes"))
    assert (await store.emit(PAID, None, By("shop"))).woken == 0
    assert (await show(store, claim.job_id)).awaits == "event:shop closes"
    assert (await store.emit("shop closes", None, By("shop"))).woken == 1


@pytest.mark.parametrize("command", ["run_now", "cancel", "delete"])
async def test_who_was_taken_out_of_its_sleep_is_not_woken(store: Store, command: str) -> None:
    job_id = await sleeper(store)
    if command == "run_now":
        await store.run_now(only(job_id), By("ops"), 10)
    elif command == "cancel":
        await store.cancel(only(job_id), By("ops", "enough"), 10)
    else:
        await store.delete(only(job_id), By("ops"), 10)
    before = await store.job(job_id)
    assert (await store.emit(PAID, None, By("shop"))).woken == 0
    assert await store.job(job_id) == before


async def test_a_claim_that_was_lost_does_not_go_to_sleep(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.released(claim))
    assert (await store.acknowledge([waiting_for(claim)])).stale == (claim,)
    assert (await store.emit(PAID, None, By("shop"))).woken == 0
    assert await state_of(store, claim.job_id) is JobState.READY


@pytest.mark.parametrize("came", [True, False])
async def test_a_job_with_a_cancel_request_does_not_go_to_sleep(store: Store, came: bool) -> None:
    claim = await start(store)
    await store.cancel(only(claim.job_id), By("ops", "enough"), 10)
    if came:
        await store.emit(PAID, None, By("shop"))
    await apply(store, waiting_for(claim))
    view = await show(store, claim.job_id)
    assert (view.state, view.reason) == (JobState.CANCELLED, "cancelled: enough")
    assert (await store.emit(PAID, None, By("shop"))).woken == 0


async def test_a_sleeper_whose_unique_key_is_held_waits_for_the_key(store: Store, clock: ManualClock) -> None:
    """It held the key only while it was in line; another job has it when the event comes."""
    claim = await start(store, unique=a_key(states=[JobState.READY]))
    await apply(store, waiting_for(claim))
    rival = await enqueue(store, unique=a_key(states=[JobState.READY]))
    assert (await store.emit(PAID, None, By("shop"))).woken == 0
    view = await show(store, claim.job_id)
    assert (view.state, view.reason, view.awaits) == (JobState.PAUSED, Reason.KEY_HELD, None)
    assert (await claim_one(store, await employ(store))).job_id == rival
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert await state_of(store, claim.job_id) is JobState.READY


async def test_emitting_and_going_to_sleep_at_the_same_instant_leaves_no_job_asleep(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Two processes park jobs and two emit what those wait for, again and again, each time at once."""
    store = real_time_store
    await store.insert([a_job() for _ in range(4 * ROUNDS)])
    claims = await claim_some(store, await employ(store), 4 * ROUNDS)
    roles = [(engine_url, claims[number::2] if number < 2 else [], number) for number in range(SIZE)]
    told = await asyncio.to_thread(crew.together, park_or_emit, roles)
    emitted: list[tuple[bool, str | None, int]] = [each for number in (2, 3) for each in told[number]]
    assert Counter(is_first for is_first, _, _ in emitted) == {True: ROUNDS, False: ROUNDS}
    for one, other in zip(told[2], told[3], strict=True):
        assert one[1] == other[1]
    woken = sum(count for _, _, count in emitted)
    assert 0 <= woken <= len(claims)
    views = [await show(store, claim.job_id) for claim in claims]
    assert Counter((view.state, view.reason) for view in views) == {(JobState.READY, Reason.EVENT_CAME): len(claims)}
    again = await claim_some(store, await employ(store), 2 * len(claims))
    assert Counter(claim.job_id for claim in again) == Counter(claim.job_id for claim in claims)


def park_or_emit(ready: Ready, url: str, claims: list[Claim], number: int) -> list[tuple[bool, str | None, int]]:
    """In each round, together with the others: put two jobs to sleep for an event, or emit it."""

    async def work() -> list[tuple[bool, str | None, int]]:
        store = store_for(url)
        await store.open()
        answers = []
        try:
            await store.emitted("nothing")  # connected
            for turn in range(ROUNDS):
                ready()
                if claims:
                    await apply(store, *(waiting_for(claim, f"e{turn}") for claim in claims[2 * turn : 2 * turn + 2]))
                else:
                    emission = await store.emit(f"e{turn}", str(number), By("crew"))
                    answers.append((emission.is_first, emission.payload, emission.woken))
        finally:
            await store.close()
        return answers

    return asyncio.run(work())


async def test_jobs_that_ask_are_found_among_those_that_wait_for_something_else(store: Store) -> None:
    """However many jobs wait for events, only those with a question are looked at, the newest first, in pages."""
    for number in range(5):
        await sleeper(store, f"{'a' if number % 2 else 'z'} paid {number}")
    asking: list[JobId] = []
    for _ in range(3):
        claim = await start(store)
        await apply(store, waiting_for(claim, approval_event(claim.job_id, "go")))
        asking.insert(0, claim.job_id)
    assert sorted(asking, reverse=True) == await store.asking(10)
    first = await store.asking(2)
    assert first + await store.asking(2, first[-1]) == sorted(asking, reverse=True)
    await store.emit(approval_event(asking[0], "go"), None, By("ada"))
    assert asking[0] not in await store.asking(10)
