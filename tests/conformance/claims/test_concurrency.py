"""The promises that only several processes can test: one claimant, one key, one winner (E1, G3, G7)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.support.builders.jobs import A_FAILURE, HOUR, a_job, a_key, claim_some, employ, state_of
from tests.support.crew import SIZE, Crew, Ready

from perdure.app.connect import store_for
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, Intake, NewJob, OnConflict, Receipt
from perdure.domain.jobs.states import JobState
from perdure.errors import DuplicateJobError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

T = TypeVar("T")

REJECT = OnConflict.REJECT
JOBS = 3_000
ROUNDS, KEYS = 10, 40
CALLS_IN_EACH = 16  # of four processes: 64 at once


async def test_claims_of_four_processes_never_overlap(real_time_store: Store, engine_url: str, crew: Crew) -> None:
    jobs = [a_job(priority=number % 3) for number in range(JOBS)]
    await real_time_store.insert(jobs)
    taken = await asyncio.to_thread(crew.together, claim_until_empty, [(engine_url,)] * SIZE)
    left = await claim_some(real_time_store, await employ(real_time_store), JOBS)
    everybody = Counter(job_id for each in taken for job_id in each) + Counter(claim.job_id for claim in left)
    assert everybody == Counter(job.id for job in jobs)
    assert all(taken)


async def test_e1_64_concurrent_inserts_of_one_key_make_one_job(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """From four processes behind a barrier; everybody learns the same id, and one learns that it is new."""
    for on_conflict in OnConflict:
        key = a_key(f"site:{on_conflict}", on_conflict=on_conflict)
        batches = [[a_job(unique=key) for _ in range(CALLS_IN_EACH)] for _ in range(SIZE)]
        told = await asyncio.to_thread(crew.together, insert_at_once, [(engine_url, batch) for batch in batches])
        receipts: list[Receipt] = [receipt for each in told for receipt in each]
        assert len(receipts) == SIZE * CALLS_IN_EACH
        assert len({receipt.job_id for receipt in receipts}) == 1
        second = Intake.REPLACED if on_conflict is OnConflict.REPLACE else Intake.EXISTING
        assert Counter(receipt.intake for receipt in receipts) == {Intake.NEW: 1, second: len(receipts) - 1}
    assert len(await real_time_store.jobs(JobFilter(), Page())) == len(OnConflict)


async def test_e1_64_concurrent_inserts_of_one_id_make_one_job(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Whoever does not know whether a commit went through may try again, with or without a key."""
    for job in (a_job(), a_job(delay=HOUR), a_job(unique=a_key()), a_job(unique=a_key("r", on_conflict=REJECT))):
        batches = [(engine_url, [job] * CALLS_IN_EACH)] * SIZE
        told = await asyncio.to_thread(crew.together, insert_at_once, batches)
        receipts = [receipt for each in told for receipt in each]
        assert {receipt.job_id for receipt in receipts} == {job.id}
        assert Counter(receipt.intake for receipt in receipts) == {Intake.NEW: 1, Intake.EXISTING: len(receipts) - 1}
    assert len(await real_time_store.jobs(JobFilter(), Page())) == 4


async def test_batches_of_the_same_keys_in_any_order_never_deadlock(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    told = await asyncio.to_thread(crew.together, insert_shuffled, [(engine_url, seed) for seed in range(SIZE)])
    assert Counter(intake for each in told for _, intake in each)[Intake.NEW] == ROUNDS * KEYS
    assert len({job_id for each in told for job_id, _ in each}) == ROUNDS * KEYS
    assert len(await real_time_store.jobs(JobFilter(), Page(limit=1_000))) == ROUNDS * KEYS


async def test_acknowledge_racing_with_rescue_has_one_winner_for_each_job(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Two processes say done, two say crashed, in batches of any order: each claim is settled once."""
    await real_time_store.insert([a_job(unique=a_key(f"k{number}")) for number in range(400)])
    claims = await claim_some(real_time_store, await employ(real_time_store), 400)
    roles = [(engine_url, claims, seed, bool(seed % 2)) for seed in range(SIZE)]
    won = await asyncio.to_thread(crew.together, settle_all, roles)
    assert Counter(job_id for each in won for job_id in each) == Counter(claim.job_id for claim in claims)
    for claim in claims[::20]:
        by_rescue = claim.job_id in {*won[1], *won[3]}
        expected = JobState.READY if by_rescue else JobState.SUCCEEDED
        assert await state_of(real_time_store, claim.job_id) is expected


def claim_until_empty(ready: Ready, url: str) -> list[JobId]:
    """Be a worker: claim, acknowledge one half, give the other back, until there is nothing more."""

    async def work(store: Store) -> list[JobId]:
        worker_id = await employ(store)
        claims = await claim_some(store, worker_id, 40)
        await asyncio.to_thread(ready)
        done: list[JobId] = []
        while claims:
            kept, returned = claims[:30], claims[30:]
            moves = [transition.succeeded(claim, None, ()) for claim in kept]
            moves += [transition.released(claim) for claim in returned]
            assert (await store.acknowledge(moves)).stale == ()
            done += [claim.job_id for claim in kept]
            claims = await claim_some(store, worker_id, 40)
        return done

    return asyncio.run(_with_store(url, work))


def insert_at_once(ready: Ready, url: str, jobs: list[NewJob]) -> list[Receipt]:
    """Hand in each job with a call of its own, all at the same time; a refusal names the existing job."""

    async def insert(store: Store, job: NewJob) -> Receipt:
        try:
            [receipt] = await store.insert([job])
        except DuplicateJobError as error:
            return Receipt(JobId(error.job_id), Intake.EXISTING)
        return receipt

    async def work(store: Store) -> list[Receipt]:
        await asyncio.to_thread(ready)
        return await asyncio.gather(*(insert(store, job) for job in jobs))

    return asyncio.run(_with_store(url, work))


def insert_shuffled(ready: Ready, url: str, seed: int) -> list[tuple[JobId, Intake]]:
    """Hand in the keys of one round after the other, at the same instant as the others but in an order of one's own."""
    order = random.Random(seed)  # noqa: S311 - a shuffle, no secret

    async def work(store: Store) -> list[tuple[JobId, Intake]]:
        told = []
        for round_ in range(ROUNDS):
            keys = order.sample(range(KEYS), KEYS)
            jobs = [a_job(unique=a_key(f"{round_}:{key}")) for key in keys]
            await asyncio.to_thread(ready)
            told += [(receipt.job_id, receipt.intake) for receipt in await store.insert(jobs)]
        return told

    return asyncio.run(_with_store(url, work))


def settle_all(ready: Ready, url: str, claims: list[Claim], seed: int, rescue: bool) -> list[JobId]:
    """Acknowledge all these claims, in batches of an order of one's own; the jobs for which this was the first word."""
    order = random.Random(seed)  # noqa: S311 - a shuffle, no secret
    mine = order.sample(claims, len(claims))

    async def work(store: Store) -> list[JobId]:
        await asyncio.to_thread(ready)
        won: list[JobId] = []
        for start in range(0, len(mine), 25):
            batch = mine[start : start + 25]
            moves = [
                transition.crashed(claim, A_FAILURE) if rescue else transition.succeeded(claim, None, ())
                for claim in batch
            ]
            stale = {claim.job_id for claim in (await store.acknowledge(moves)).stale}
            won += [claim.job_id for claim in batch if claim.job_id not in stale]
        return won

    return asyncio.run(_with_store(url, work))


async def _with_store(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    store = store_for(url)
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()
