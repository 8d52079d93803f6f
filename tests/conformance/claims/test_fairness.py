"""Fair shares: jobs of different keys take turns, however many of them one key hands in."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.builders.jobs import MINUTE, SECOND, a_job, a_key, claim_some, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Intake, NewJob, OnConflict
from perdure.storage.port import Store


def jobs_of(tenant: str | None, number: int, **changes: object) -> list[NewJob]:
    return [a_job(fair_key=tenant, tags=(tenant or "none",), **changes) for _ in range(number)]


async def takers(store: Store, worker_id: WorkerId, limit: int) -> list[str]:
    """The tenants of the next jobs, in the order in which they are handed out."""
    return [tag for claim in await claim_some(store, worker_id, limit) for tag in claim.tags]


@pytest.mark.parametrize("begun", [0, 500])
async def test_one_tenants_many_jobs_do_not_delay_anothers_few(store: Store, clock: ManualClock, begun: int) -> None:
    worker_id = await employ(store)
    many = jobs_of("big", 20_000)
    for start in range(0, len(many), 5_000):
        await store.insert(many[start : start + 5_000])
    for _ in range(0, begun, 100):
        assert await takers(store, worker_id, 100) == ["big"] * 100
    clock.move(MINUTE)
    await store.insert(jobs_of("small", 10))
    first = Counter(await takers(store, worker_id, 24))
    assert first["small"] == 10


async def test_jobs_that_come_one_at_a_time_take_turns_too(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    for tenant in ("big",) * 30 + ("small",) * 5:
        await enqueue(store, fair_key=tenant, tags=(tenant,))
        clock.move(SECOND)
    assert Counter(await takers(store, worker_id, 12))["small"] == 5


async def test_tenants_share_evenly(store: Store) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("a", 300))
    await store.insert(jobs_of("b", 200))
    await store.insert(jobs_of("c", 100))
    for _ in range(5):
        shares = Counter(await takers(store, worker_id, 60))
        assert all(18 <= shares[tenant] <= 22 for tenant in "abc"), shares
    await takers(store, worker_id, 10)  # the last of c
    shares = Counter(await takers(store, worker_id, 100))
    assert (48 <= shares["a"] <= 52, shares["c"]) == (True, 0), shares


async def test_the_jobs_of_one_key_keep_their_order(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    handed_in = dict[str, list[JobId]](a=[], b=[])
    for tenant, number in (("a", 40), ("b", 20), ("a", 30), ("b", 1), ("a", 1)):
        jobs = jobs_of(tenant, number)
        handed_in[tenant] += [job.id for job in jobs]
        await store.insert(jobs)
        clock.move(SECOND)
    taken = await claim_some(store, worker_id, 100)
    for tenant, ids in handed_in.items():
        assert [claim.job_id for claim in taken if tenant in claim.tags] == ids


async def test_what_a_key_had_before_does_not_count(store: Store) -> None:
    """A tenant that used what nobody else wanted is not made to wait for it."""
    worker_id = await employ(store)
    await store.insert(jobs_of("a", 200))
    assert len(await claim_some(store, worker_id, 1_000)) == 200
    await store.insert(jobs_of("a", 20))
    await store.insert(jobs_of("b", 20))
    assert 8 <= Counter(await takers(store, worker_id, 20))["a"] <= 12


async def test_jobs_without_a_key_are_handed_out_as_ever(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    ids = []
    for number in (1, 20, 1):
        jobs = jobs_of(None, number)
        ids += [job.id for job in jobs]
        await store.insert(jobs)
        clock.move(SECOND)
    assert [claim.job_id for claim in await claim_some(store, worker_id)] == ids


async def test_jobs_without_a_key_do_not_wait_for_a_tenants_many(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("big", 2_000))
    for _ in range(4):
        assert await takers(store, worker_id, 25) == ["big"] * 25
    clock.move(SECOND)
    plain = jobs_of(None, 5)
    await store.insert(plain)
    taken = [claim.job_id for claim in await claim_some(store, worker_id, 12)]
    assert [job_id for job_id in taken if job_id in {job.id for job in plain}] == [job.id for job in plain]


async def test_fair_jobs_do_not_starve_those_without_a_key(store: Store, clock: ManualClock) -> None:
    """New tenants come all the time, and there is never a moment without a job of theirs."""
    worker_id = await employ(store)
    await store.insert(jobs_of("first", 50))
    plain = jobs_of(None, 3)
    await store.insert(plain)
    waiting = {job.id for job in plain}
    for number in range(100):
        await store.insert(jobs_of(f"tenant-{number % 7}", 10))
        clock.move(SECOND)
        waiting -= {claim.job_id for claim in await claim_some(store, worker_id, 10)}
    assert not waiting


async def test_a_share_is_one_of_its_queue_and_priority(store: Store) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("a", 50))
    urgent = a_job(fair_key="a", priority=1)
    other = a_job(fair_key="a", queue="other")
    assert [receipt.intake for receipt in await store.insert([urgent, other])] == [Intake.NEW] * 2
    assert [claim.job_id for claim in await claim_some(store, worker_id, 1)] == [urgent.id]
    assert [claim.job_id for claim in await claim_some(store, worker_id, 1, "other")] == [other.id]


async def test_a_fair_job_may_have_a_unique_key_and_a_time(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    first = a_job(fair_key="a", unique=a_key())
    later = a_job(fair_key="a", delay=MINUTE)
    again = a_job(fair_key="a", unique=a_key(on_conflict=OnConflict.REPLACE), args='{"name":"Eve"}')
    receipts = await store.insert([first, later, again])
    assert [(receipt.job_id, receipt.intake) for receipt in receipts] == [
        (first.id, Intake.NEW),
        (later.id, Intake.NEW),
        (first.id, Intake.REPLACED),
    ]
    [claim] = await claim_some(store, worker_id)
    assert (claim.job_id, claim.args) == (first.id, again.args)
    clock.move(MINUTE)
    await store.promote(10)
    assert [claim.job_id for claim in await claim_some(store, worker_id)] == [later.id]


async def test_a_fair_job_handed_in_twice_is_one_job(store: Store) -> None:
    worker_id = await employ(store)
    job, other = a_job(fair_key="a"), a_job(fair_key="a")
    assert [receipt.intake for receipt in await store.insert([job])] == [Intake.NEW]
    assert [receipt.intake for receipt in await store.insert([job, other, other])] == [
        Intake.EXISTING,
        Intake.NEW,
        Intake.EXISTING,
    ]
    assert [claim.job_id for claim in await claim_some(store, worker_id)] == [job.id, other.id]


@pytest.mark.parametrize("key", ["it's", '"{%s}"', "漢字 🦩", "", "a" * 100])
async def test_any_text_is_a_key(store: Store, key: str) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of(key, 30))
    job = a_job(fair_key=f"{key}!")
    await store.insert([*jobs_of(key, 2), job])
    assert job.id in {claim.job_id for claim in await claim_some(store, worker_id, 4)}
