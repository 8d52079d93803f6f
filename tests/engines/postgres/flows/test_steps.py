"""Steps in batches: fenced by the lease, even by one that is being taken away just then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import psycopg
from tests.engines.postgres.conftest import Ask, until_waiting
from tests.support.builders.jobs import a_job, claim_some, employ, start

from perdure.domain.flows.flow import Progress, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.job import Claim
from perdure.engines.postgres.store import PostgresStore

BEGUN_AT = datetime(2026, 3, 1, tzinfo=UTC)


def a_write(claim: Claim, key: str = "fetch", state: StepState = StepState.DONE, result: str = "1") -> StepWrite:
    step = StepRecord(key=key, kind=StepKind.CALL, state=state, result=result, tries=1, begun_at=BEGUN_AT)
    return StepWrite(claim, step)


async def test_a_claim_that_is_being_lost_writes_nothing(
    pg_store: PostgresStore, ask: Ask, postgres_url: str, schema: str
) -> None:
    """The transaction that takes the job away has not committed yet: the write waits for it, and then fails."""
    claim = await start(pg_store)
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as rescuer:
        rescuer.execute("DELETE FROM lease WHERE job_id = %s", (claim.job_id,))
        word = Progress(current=1, total=None, note=None, at=BEGUN_AT)
        writing = asyncio.gather(
            pg_store.save_steps([a_write(claim)]), pg_store.save_progress({claim.job_id: (claim, word)})
        )
        await until_waiting(ask, schema, 2)
        rescuer.commit()
        assert (await writing)[0] == [False]
    assert ask("SELECT job_id FROM step") == ask("SELECT job_id FROM progress") == []


async def test_of_a_batch_those_whose_claim_is_held_are_written(pg_store: PostgresStore, ask: Ask) -> None:
    await pg_store.insert([a_job() for _ in range(100)])
    claims = await claim_some(pg_store, await employ(pg_store), 100)
    ask("DELETE FROM lease WHERE job_id = ANY (%s::uuid[])", [claim.job_id for claim in claims[::3]])
    writes = [a_write(claim, f"step {number}") for claim in reversed(claims) for number in range(2)]
    assert await pg_store.save_steps(writes) == [number % 3 != 0 for number in reversed(range(100)) for _ in range(2)]
    assert len(ask("SELECT key FROM step")) == 132


async def test_one_step_several_times_in_a_batch_is_as_if_written_one_after_the_other(pg_store: PostgresStore) -> None:
    claim = await start(pg_store)
    writes = [
        a_write(claim, "a", StepState.BEGUN, "1"),
        a_write(claim, "b", StepState.BEGUN, "2"),
        a_write(claim, "a", StepState.DONE, "3"),
        a_write(claim, "a", StepState.BEGUN, "4"),
        a_write(claim, "b", StepState.BEGUN, "5"),
    ]
    assert await pg_store.save_steps(writes) == [True] * 5
    kept = (await pg_store.steps([claim.job_id]))[claim.job_id]
    assert [(step.key, step.state, step.result) for step in kept] == [
        ("a", StepState.DONE, "3"),
        ("b", StepState.BEGUN, "5"),
    ]
