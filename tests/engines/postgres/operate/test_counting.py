"""Dead letters counted by kind: by their fingerprints, and those without one by their jobs."""

from __future__ import annotations

from tests.engines.postgres.conftest import Ask
from tests.support.builders.jobs import A_FAILURE, a_job, apply, claim_some, employ

from perdure.domain.jobs import transition
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.store import PostgresStore
from perdure.storage.records import JobFilter


async def test_a_dead_letter_without_a_fingerprint_has_the_kind_of_its_job(pg_store: PostgresStore, ask: Ask) -> None:
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job(kind=kind) for kind in ("mail", "mail", "charge")])
    claims = await claim_some(pg_store, worker_id, 3)
    await apply(pg_store, *(transition.died(claim, Reason.EXHAUSTED, A_FAILURE) for claim in claims))
    ask("UPDATE finished SET fingerprint = NULL WHERE job_id = %s", claims[0].job_id)
    tallies = await pg_store.count(JobFilter(states="dead"), ("kind",))
    assert {tally.kind: tally.jobs for tally in tallies} == {"mail": 2, "charge": 1}
