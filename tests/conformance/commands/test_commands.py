"""CommandStore: what operators change, and the trail that they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    MINUTE,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
    start,
    state_of,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

ALL = frozenset(JobState)
Command = Callable[[Store, JobFilter, int], Awaitable[list[JobId]]]

COMMANDS: dict[str, Command] = {
    "requeue": lambda store, which, limit: store.requeue(which, By("ops"), limit),
    "cancel": lambda store, which, limit: store.cancel(which, By("ops", "no need"), limit),
    "run_now": lambda store, which, limit: store.run_now(which, By("ops"), limit),
    "purge": lambda store, which, limit: store.purge(which, By("ops"), limit),
}
SUITS = {"requeue": JobState.DEAD, "cancel": JobState.READY, "run_now": JobState.SCHEDULED, "purge": JobState.DEAD}
each_command = pytest.mark.parametrize("name", COMMANDS)


async def test_a7_the_claim_of_the_former_life_is_stale(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    await store.requeue(JobFilter(), By("ops"), 10)
    assert (await store.acknowledge([transition.succeeded(claim, None, ())])).stale == (claim,)
    await claim_one(store, await employ(store))
    assert (await store.acknowledge([transition.succeeded(claim, None, ())])).stale == (claim,)


@pytest.mark.parametrize("state", sorted(PARKED | {JobState.READY}))
async def test_cancel_calls_off_what_has_not_started(store: Store, clock: ManualClock, state: JobState) -> None:
    job_id = await job_in(state, store, unique=a_key())
    clock.move(MINUTE)
    assert await store.cancel(only(job_id), By("ops", "no need"), 10) == [job_id]
    view = await show(store, job_id)
    assert view.state is JobState.CANCELLED
    assert view.reason.startswith(Reason.CANCELLED)
    assert (view.finished_at, view.due_at) == (clock.now(), None)
    assert await claim_some(store, await employ(store)) == []
    clock.move(DAY)
    assert (await store.promote(10)).total == 0
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert receipt.intake is Intake.NEW


async def test_cancel_asks_a_running_job_to_stop(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    clock.move(MINUTE)
    assert await store.cancel(only(claim.job_id), By("ops", "no need"), 10) == [claim.job_id]
    view = await show(store, claim.job_id)
    assert (view.state, view.cancel_requested_at) == (JobState.RUNNING, clock.now())
    await apply(store, transition.cancelled(claim, "no need"))
    assert await state_of(store, claim.job_id) is JobState.CANCELLED


async def test_cancel_asks_each_running_job_once(store: Store, clock: ManualClock) -> None:
    """So that whoever cancels page by page comes to an end; the first request is the one that counts."""
    await store.insert([a_job() for _ in range(3)])
    claims = await claim_some(store, await employ(store))
    asked_at = clock.now()
    first = await store.cancel(JobFilter(), By("ops", "no need"), 2)
    second = await store.cancel(JobFilter(), By("ops", "no need"), 2)
    assert sorted(first + second) == sorted(claim.job_id for claim in claims)
    clock.move(MINUTE)
    assert await store.cancel(JobFilter(), By("ops", "no need"), 2) == []
    assert (await show(store, claims[0].job_id)).cancel_requested_at == asked_at


async def test_cancel_and_claim_at_once_miss_no_job(store: Store, other_store: OpenStore) -> None:
    """Whoever comes first, the job is called off, or its worker is asked to stop."""
    operator = await other_store()
    worker_id = await employ(store)
    for _ in range(50):
        ids = tuple(receipt.job_id for receipt in await store.insert([a_job() for _ in range(6)]))
        claiming = asyncio.create_task(claim_some(store, worker_id))
        cancelled = await asyncio.gather(*(operator.cancel(only(job_id), By("ops", "no need"), 1) for job_id in ids))
        claims = await claiming
        assert sorted(job_id for each in cancelled for job_id in each) == sorted(ids)
        requests = {request.job_id for request in await store.cancel_requests(worker_id)}
        assert requests == {claim.job_id for claim in claims}
        await apply(store, *(transition.cancelled(claim, None) for claim in claims))


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_cancel_leaves_alone_what_is_final(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    assert await store.cancel(JobFilter(), By("ops", "no need"), 10) == []
    assert await show(store, job_id) == before


async def test_cancel_keeps_the_key_if_the_job_says_so(store: Store) -> None:
    job_id = await enqueue(store, unique=a_key(states=ALL))
    await store.cancel(JobFilter(), By("ops"), 10)
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert (receipt.job_id, receipt.intake) == (job_id, Intake.EXISTING)


@pytest.mark.parametrize("state", sorted(PARKED))
async def test_run_now_makes_the_parked_ready(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    failures = (await show(store, job_id)).failures
    assert await store.run_now(only(job_id), By("ops"), 10) == [job_id]
    view = await show(store, job_id)
    assert (view.state, view.reason, view.due_at) == (JobState.READY, Reason.RUN_NOW, None)
    assert view.failures == failures
    assert (await claim_one(store, await employ(store))).job_id == job_id


async def test_run_now_resumes_what_was_paused_for_good(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.paused(claim, Reason.PAUSED, None))
    assert await store.run_now(JobFilter(), By("ops"), 10) == [claim.job_id]
    assert await state_of(store, claim.job_id) is JobState.READY


async def test_run_now_begins_a_scheduled_life_now(store: Store, clock: ManualClock) -> None:
    """Limits over all attempts count from when the job could run."""
    await enqueue(store, delay=DAY)
    clock.move(MINUTE)
    await store.run_now(JobFilter(), By("ops"), 10)
    assert (await claim_one(store, await employ(store))).since == clock.now()


@pytest.mark.parametrize("state", sorted(ALL - PARKED))
async def test_run_now_leaves_alone_what_is_not_parked(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    assert await store.run_now(JobFilter(), By("ops"), 10) == []
    assert await show(store, job_id) == before


async def test_run_now_does_not_break_a_unique_key(store: Store) -> None:
    claim = await start(store, unique=a_key(states=ALL - {JobState.WAITING}))
    await apply(store, transition.waiting(claim, Reason.SNOOZED, HOUR))
    holder = await enqueue(store, unique=a_key())
    assert await store.run_now(JobFilter(), By("ops"), 10) == []
    assert await state_of(store, claim.job_id) in PARKED
    assert await state_of(store, holder) is JobState.READY


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_purge_deletes_the_finished_with_their_attempts_and_keys(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store, unique=a_key(states=ALL))
    assert await store.purge(only(job_id), By("ops"), 10) == [job_id]
    assert await store.job(job_id) is None
    assert await store.attempts(job_id) == []
    [receipt] = await store.insert([a_job(id=job_id, unique=a_key())])
    assert receipt.intake is Intake.NEW


@pytest.mark.parametrize("state", sorted(ACTIVE))
async def test_purge_leaves_alone_what_is_not_final(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    assert await store.purge(JobFilter(), By("ops"), 10) == []
    assert await show(store, job_id) == before


async def several(store: Store, state: JobState, **changes: object) -> list[JobId]:
    return [await job_in(state, store, id=numbered_id(n), queue=f"q{n}", **changes) for n in range(5)]


@each_command
async def test_a_command_heeds_its_filter(store: Store, name: str) -> None:
    ids = await several(store, SUITS[name])
    assert await COMMANDS[name](store, JobFilter(queue="q3"), 10) == [ids[3]]
    assert await COMMANDS[name](store, JobFilter(ids=()), 10) == []
    assert await COMMANDS[name](store, JobFilter(kind="nobody"), 10) == []
    assert len(await store.jobs(JobFilter(states=frozenset({SUITS[name]})), Page())) == 4


@each_command
async def test_a_command_touches_at_most_its_limit(store: Store, name: str) -> None:
    ids = await several(store, SUITS[name])
    done = [await COMMANDS[name](store, JobFilter(states=frozenset({SUITS[name]})), 2) for _ in range(4)]
    assert [len(batch) for batch in done] == [2, 2, 1, 0]
    assert sorted(job_id for batch in done for job_id in batch) == ids


@each_command
async def test_what_cannot_be_done_takes_no_room_in_the_limit(store: Store, name: str) -> None:
    """Jobs in other states, newer and older, do not hide the one that suits."""
    wrong = JobState.READY if SUITS[name] is not JobState.READY else JobState.DEAD
    for number in (0, 1, 8, 9):
        await job_in(wrong, store, id=numbered_id(number), queue=f"w{number}")
    suits = await job_in(SUITS[name], store, id=numbered_id(5))
    assert await COMMANDS[name](store, JobFilter(), 1) == [suits]


@each_command
async def test_two_operators_at_once_do_it_once(store: Store, other_store: OpenStore, name: str) -> None:
    ids = await several(store, SUITS[name])
    elsewhere = await other_store()
    which = JobFilter(states=frozenset({SUITS[name]}))
    done = await asyncio.gather(*(COMMANDS[name](one, which, 10) for one in (store, elsewhere) * 2))
    assert sorted(job_id for batch in done for job_id in batch) == ids


@each_command
async def test_a_command_writes_who_did_what_to_the_audit_trail(store: Store, engine_url: str, name: str) -> None:
    await several(store, SUITS[name])
    assert audit_lines(engine_url) == 0
    done = await COMMANDS[name](store, JobFilter(), 3)
    assert len(done) == 3
    assert audit_lines(engine_url) > 0


def audit_lines(url: str) -> int:
    [(lines,)] = query(url, "SELECT count(*) FROM {audit} WHERE actor = 'ops'")
    return int(lines)
