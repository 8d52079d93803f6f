"""CommandStore.delete: any job goes, whatever it is doing (C6)."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import (
    a_key,
    claim_one,
    employ,
    enqueue,
    job_in,
    only,
    state_of,
)
from tests.support.databases.behind import query

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest, JobFilter, Page


async def test_c6_the_worker_of_a_deleted_job_is_reported(store: Store) -> None:
    worker_id = await employ(store)
    await enqueue(store)
    claim = await claim_one(store, worker_id)
    await store.delete(only(claim.job_id), By("ops"), 10)
    assert await store.cancel_requests(worker_id) == [CancelRequest(claim.job_id, claim.token, "job deleted")]
    assert await store.cancel_requests(worker_id) == []


@pytest.mark.parametrize("state", JobState)
async def test_any_job_can_be_deleted(store: Store, state: JobState) -> None:
    """Whatever its state: its id and its key are free again, and another one is left alone."""
    other = await enqueue(store, queue="others")
    job_id = await job_in(state, store, unique=a_key())
    assert await store.delete(JobFilter(ids=(job_id,)), By("ops"), 10) == [job_id]
    assert await store.job(job_id) is None
    assert await store.attempts(job_id) == []
    assert await enqueue(store, id=job_id, unique=a_key()) == job_id
    assert await state_of(store, other) is JobState.READY


async def test_deleting_keeps_to_its_limit(store: Store) -> None:
    ids = sorted([await enqueue(store) for _ in range(5)])
    assert await store.delete(JobFilter(), By("ops"), 2) == ids[:2]
    assert len(await store.jobs(JobFilter(), Page())) == 3


async def test_deleting_leaves_a_trail(store: Store, engine_url: str) -> None:
    job_id = await enqueue(store)
    await store.delete(only(job_id), By("ada"), 10)
    [(actor, action, about)] = query(engine_url, "SELECT actor, action, job_id FROM {audit}")
    assert (actor, action, str(about)) == ("ada", "delete", job_id)
