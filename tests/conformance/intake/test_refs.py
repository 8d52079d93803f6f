"""The names that people outside know jobs by: each is that of one job, and finds it."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.builders.jobs import DAY, HOSTILE, a_job, a_key, claim_some, employ, job_in, show

from perdure.domain.jobs.job import Intake, OnConflict
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError, DuplicateJobError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page


async def by_ref(store: Store, ref: str) -> list[str]:
    return [view.id for view in await store.jobs(JobFilter(ref=ref), Page())]


async def test_f4_a_job_is_found_by_its_ref_in_every_place(store: Store) -> None:
    for state in JobState:
        job_id = await job_in(state, store, ref=f"JB_{state}", queue=f"q-{state}")
        assert await by_ref(store, f"JB_{state}") == [job_id]
        assert (await show(store, job_id)).ref == f"JB_{state}"
        assert await store.jobs(JobFilter(ref=f"JB_{state}", kind="other"), Page()) == []
    assert await by_ref(store, "JB_nobody") == []


async def test_f4_a_claim_carries_the_ref_and_others_have_none(store: Store) -> None:
    await store.insert([a_job(ref="JB_1"), a_job()])
    claims = await claim_some(store, await employ(store))
    assert [claim.ref for claim in claims] == ["JB_1", None]


async def test_f4_the_same_ref_again_is_the_same_job(store: Store) -> None:
    [first] = await store.insert([a_job(ref="JB_1")])
    [again] = await store.insert([a_job(ref="JB_1", args='{"name":"Eve"}')])
    assert (first.intake, again.intake, again.job_id) == (Intake.NEW, Intake.EXISTING, first.job_id)
    assert (await show(store, first.job_id)).args == '{"name":"Ada"}'


async def test_f4_a_ref_is_one_job_within_a_batch(store: Store) -> None:
    jobs = [a_job(ref="JB_1"), a_job(), a_job(ref="JB_1"), a_job(ref="JB_2", delay=DAY)]
    receipts = await store.insert(jobs)
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.NEW, Intake.EXISTING, Intake.NEW]
    assert receipts[2].job_id == receipts[0].job_id
    assert len(await store.jobs(JobFilter(), Page())) == 3


async def test_f4_a_ref_of_another_kind_is_refused_and_nothing_is_stored(store: Store) -> None:
    [first] = await store.insert([a_job(ref="JB_1")])
    with pytest.raises(ArgumentError, match="ref 'JB_1' belongs to a job of kind greet: choose another for bill"):
        await store.insert([a_job(), a_job(kind="bill", ref="JB_1", unique=a_key("a bill"))])
    with pytest.raises(ArgumentError, match="belongs to a job of kind greet"):
        await store.insert([a_job(kind="bill", ref="JB_1")])
    with pytest.raises(ArgumentError, match="belongs to a job of kind a"):
        await store.insert([a_job(kind="a", ref="JB_2"), a_job(kind="b", ref="JB_2")])
    assert [view.id for view in await store.jobs(JobFilter(), Page())] == [first.job_id]
    assert await store.key_holder("a bill") is None


async def test_f4_a_ref_and_a_unique_key_together(store: Store) -> None:
    """The job that is there already is not taken for a rival of itself."""
    rejecting = a_key(on_conflict=OnConflict.REJECT)
    [first] = await store.insert([a_job(ref="JB_1", unique=rejecting)])
    [again] = await store.insert([a_job(ref="JB_1", unique=rejecting)])
    assert (again.job_id, again.intake) == (first.job_id, Intake.EXISTING)
    with pytest.raises(DuplicateJobError):
        await store.insert([a_job(ref="JB_2", unique=rejecting)])
    assert await by_ref(store, "JB_2") == []


async def test_f4_of_many_at_once_with_one_ref_one_comes_in(store: Store) -> None:
    sibling = store.sibling()
    await sibling.open()
    try:
        both = (store, sibling) * 5
        receipts = await asyncio.gather(*(each.insert([a_job(ref="JB_1")]) for each in both))
    finally:
        await sibling.close()
    assert len({receipt.job_id for [receipt] in receipts}) == 1
    assert [receipt.intake for [receipt] in receipts].count(Intake.NEW) == 1


async def test_f4_a_ref_is_free_again_once_its_job_is_forgotten(store: Store) -> None:
    job_id = await job_in(JobState.SUCCEEDED, store, ref="JB_1")
    assert await store.requeue(JobFilter(ref="JB_1"), By("ada"), 10) == [job_id]
    assert await store.delete(JobFilter(ref="JB_1"), By("ada"), 10) == [job_id]
    [fresh] = await store.insert([a_job(kind="bill", ref="JB_1")])
    assert fresh.intake is Intake.NEW
    assert await store.prune(Keep(), 10) == 0


@pytest.mark.parametrize("ref", HOSTILE)
async def test_f4_any_text_can_be_a_ref(store: Store, ref: str) -> None:
    [receipt] = await store.insert([a_job(ref=ref)])
    assert await by_ref(store, ref) == [receipt.job_id]
