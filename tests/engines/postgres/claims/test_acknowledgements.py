"""What only this engine's acknowledgements have: row locks, which must be taken in one order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from tests.engines.postgres.conftest import Ask, eventually, until_waiting
from tests.support.builders.jobs import A_FAILURE, a_job, claim_one, claim_some, employ, numbered_id

from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.engines.postgres.store import PostgresStore

WAITING = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"


def done(claim: Claim) -> Transition:
    return transition.succeeded(claim, None, ())


def failed(claim: Claim) -> Transition:
    return transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0))


@pytest.mark.parametrize("end", [done, failed])
async def test_two_that_acknowledge_the_same_claims_cannot_wait_for_each_other(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask, end: Callable[[Claim], Any]
) -> None:
    """While it waits for the first job of all, it holds none that another transaction might take before."""
    jobs = [a_job(id=numbered_id(number)) for number in (1, 2, 3)]
    await pg_store.insert(jobs)
    claims = {claim.job_id: claim for claim in await claim_some(pg_store, await employ(pg_store))}
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as other:
        other.execute("SELECT FROM lease WHERE job_id = %s FOR UPDATE", [jobs[0].id])
        answer = asyncio.create_task(pg_store.acknowledge([end(claims[job.id]) for job in reversed(jobs)]))

        async def waits() -> object:
            return ask(WAITING, schema)

        await eventually(waits)
        free = ask("SELECT job_id::text FROM lease ORDER BY job_id FOR UPDATE SKIP LOCKED")
        assert [job_id for (job_id,) in free] == [jobs[1].id, jobs[2].id]
    assert (await asyncio.wait_for(answer, 10)).applied == 3


@pytest.mark.parametrize("end", [done, failed])
async def test_claims_made_in_another_order_are_let_go_of_in_that_of_ids_too(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask, end: Callable[[Claim], Any]
) -> None:
    """As above, with a claim for each job, the last job of all claimed first."""
    worker_id = await employ(pg_store)
    jobs = [a_job(id=numbered_id(number)) for number in (3, 2, 1)]
    claims = []
    for job in jobs:
        await pg_store.insert([job])
        claims.append(await claim_one(pg_store, worker_id))
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as other:
        other.execute("SELECT FROM lease WHERE job_id = %s FOR UPDATE", [jobs[2].id])
        answer = asyncio.create_task(pg_store.acknowledge([end(claim) for claim in claims]))
        await until_waiting(ask, schema)
        free = ask("SELECT job_id::text FROM lease ORDER BY job_id FOR UPDATE SKIP LOCKED")
        assert [job_id for (job_id,) in free] == [jobs[1].id, jobs[0].id]
    assert (await asyncio.wait_for(answer, 10)).applied == 3


async def test_of_claims_that_lie_in_one_another_only_those_held_are_written(pg_store: PostgresStore) -> None:
    """Each job is let go of by its own token, never by that of its neighbours."""
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job(id=numbered_id(number)) for number in (1, 3, 5)])
    odd = await claim_some(pg_store, worker_id)
    await pg_store.insert([a_job(id=numbered_id(number)) for number in (2, 4, 6)])
    even = await claim_some(pg_store, worker_id)
    strange = replace(odd[1], token=even[0].token)
    answer = await pg_store.acknowledge([done(claim) for claim in (even[2], strange, odd[0], even[0], odd[2], even[1])])
    assert (answer.applied, answer.stale) == (5, (strange,))


async def test_those_that_are_stale_are_distinguished_in_any_order(pg_store: PostgresStore) -> None:
    jobs = [a_job(id=numbered_id(number)) for number in (1, 2, 3)]
    await pg_store.insert(jobs)
    claims = {claim.job_id: claim for claim in await claim_some(pg_store, await employ(pg_store))}
    first, second, third = (claims[job.id] for job in jobs)
    await pg_store.acknowledge([done(second)])
    answer = await pg_store.acknowledge([done(third), failed(second), done(first)])
    assert (answer.applied, answer.stale) == (2, (second,))


@pytest.mark.parametrize("is_lost", [True, False])
async def test_g3_a_checkpoint_waits_for_a_rescue_of_its_claim(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask, is_lost: bool
) -> None:
    """It writes nothing once that one has committed, and writes if that one thinks better of it."""
    await pg_store.insert([a_job()])
    [claim] = await claim_some(pg_store, await employ(pg_store))
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as other:
        other.execute("DELETE FROM lease")
        answer = asyncio.create_task(pg_store.checkpoint(claim, '"7"'))

        async def waits() -> object:
            return ask(WAITING, schema)

        await eventually(waits)
        if is_lost:
            other.commit()
        else:
            other.rollback()
        assert await asyncio.wait_for(answer, 10) is not is_lost
    assert ask("SELECT cursor FROM job") == [(None,) if is_lost else ('"7"',)]


async def test_a_checkpoint_and_a_wish_to_stop_do_not_wait_for_each_other(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    await pg_store.insert([a_job()])
    [claim] = await claim_some(pg_store, await employ(pg_store))
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as other:
        other.execute("UPDATE lease SET cancel_at = now()")
        assert await asyncio.wait_for(pg_store.checkpoint(claim, '"7"'), 10)
