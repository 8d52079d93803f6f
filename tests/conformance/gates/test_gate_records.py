"""Which gates the attempts of a job have met (C11): kept with each acknowledgement, for as long as the job is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.support.builders.gate_requests import held_by_rate, past_gates
from tests.support.builders.jobs import (
    A_FAILURE,
    HOSTILE,
    HOUR,
    MINUTE,
    SECOND,
    apply,
    claim_one,
    employ,
    enqueue,
    only,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store

KEY = 'mail:"tenant-7"'
WAIT = timedelta(seconds=252)


async def hold(store: Store, claim: Claim, clock: ManualClock) -> None:
    """Park a claim because of a rate, and let its time come."""
    await apply(store, held_by_rate(claim, clock.now(), WAIT, KEY))


ENDS: dict[str, Callable[[Claim], Transition]] = {
    "done": lambda claim: transition.succeeded(claim, None, ()),
    "done with a result": lambda claim: transition.succeeded(claim, "42", ("slow",)),
    "failed": lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, HOUR),
    "failed, at once again": lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)),
    "dead": lambda claim: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
    "cancelled": lambda claim: transition.cancelled(claim, "not wanted any more"),
    "snoozed": lambda claim: transition.waiting(claim, Reason.SNOOZED, HOUR),
    "released": transition.released,
}


@pytest.mark.parametrize("end", ENDS)
async def test_c11_every_end_of_an_attempt_keeps_the_gates_it_passed(
    store: Store, clock: ManualClock, end: str
) -> None:
    claim = past_gates(await start(store), clock.now(), KEY)
    clock.move(SECOND)
    await apply(store, ENDS[end](claim))
    [record] = await store.gate_records(claim.job_id)
    assert record.attempt == 1
    assert [(visit.gate, visit.key, visit.estimate, visit.passed_at) for visit in record.visits] == [
        ("rate", KEY, None, clock.now() - SECOND),
        ("budget", "ai", 0.3, clock.now() - SECOND),
    ]


async def test_a_batch_keeps_the_record_of_each_of_its_jobs(store: Store, clock: ManualClock) -> None:
    worker = await employ(store)
    claims = []
    for number in range(3):
        await enqueue(store)
        claim = await claim_one(store, worker)
        claims.append(past_gates(claim, clock.now(), f"k{number}") if number else claim)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))
    found = [await store.gate_records(claim.job_id) for claim in claims]
    assert [[record.visits[0].key for record in records] for records in found] == [[], ["k1"], ["k2"]]


async def test_c11_a_hold_goes_with_the_job_to_its_next_claim(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    begun = clock.now()
    await hold(store, claim, clock)
    [record] = await store.gate_records(claim.job_id)
    assert (record.visits[0].held_since, record.visits[0].held_until) == (begun, None)
    clock.move(WAIT)
    await store.promote(10)
    clock.move(SECOND)
    again = past_gates(await claim_one(store, await employ(store)), clock.now(), KEY)
    await apply(store, transition.succeeded(again, None, ()))
    [record] = await store.gate_records(claim.job_id)
    rate, budget = record.visits
    assert (rate.held_seconds, rate.held_until, rate.passed_at) == (252, begun + WAIT, begun + WAIT + SECOND)
    assert (budget.held_since, budget.passes) == (None, 1)


async def test_a_running_job_shows_how_long_it_was_held(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await hold(store, claim, clock)
    clock.move(WAIT)
    await store.promote(10)
    worker = await employ(store)
    running = await claim_one(store, worker)
    [record] = await store.gate_records(claim.job_id)
    assert (record.visits[0].held_until, record.visits[0].held_seconds) == (running.claimed_at, 252)
    assert (await store.claims_held(worker, [claim.job_id]))[0].gates == running.gates


async def test_a_crashed_attempt_keeps_how_long_it_was_held(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await hold(store, claim, clock)
    clock.move(WAIT)
    await store.promote(10)
    worker = await employ(store)
    running = await claim_one(store, worker)
    clock.move(SECOND)
    await store.retire(worker)
    [orphan] = await store.orphans(10)
    assert orphan.claim.gates == running.gates
    await apply(store, transition.crashed(orphan.claim, A_FAILURE))
    [record] = await store.gate_records(claim.job_id)
    assert (record.visits[0].held_seconds, record.visits[0].passed_at) == (252, None)


async def test_each_attempt_has_a_record_also_after_a_requeue(store: Store, clock: ManualClock) -> None:
    claim = past_gates(await start(store), clock.now(), KEY)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    clock.move(MINUTE)
    assert await store.requeue(only(claim.job_id), By("ann"), 1) == [claim.job_id]
    clock.move(MINUTE)
    again = past_gates(await claim_one(store, await employ(store)), clock.now(), "other")
    await apply(store, transition.succeeded(again, None, ()))
    records = await store.gate_records(claim.job_id)
    assert [(record.attempt, record.visits[0].key) for record in records] == [(1, KEY), (1, "other")]


async def test_any_text_in_a_key_is_kept_as_it_is(store: Store, clock: ManualClock) -> None:
    worker = await employ(store)
    for key in HOSTILE:
        await enqueue(store)
        claim = past_gates(await claim_one(store, worker), clock.now(), key)
        await apply(store, transition.succeeded(claim, None, ()))
        [record] = await store.gate_records(claim.job_id)
        assert record.visits[0].key == key


async def test_a_lost_claim_writes_no_record(store: Store, clock: ManualClock) -> None:
    claim = past_gates(await start(store), clock.now(), KEY)
    await apply(store, transition.succeeded(replace(claim, gates=None), None, ()))
    late = await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, HOUR)])
    assert late.stale == (claim,)
    assert await store.gate_records(claim.job_id) == []


async def test_a_deleted_job_takes_its_records_with_it(store: Store, clock: ManualClock) -> None:
    claim = past_gates(await start(store), clock.now(), KEY)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    assert await store.delete(only(claim.job_id), By("ann"), 1) == [claim.job_id]
    assert await store.gate_records(claim.job_id) == []
