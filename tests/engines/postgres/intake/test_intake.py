"""The plan of an insert, run by others: in the caller's own transaction, on any driver; and races for one key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from msgspec.structs import replace
from tests.engines.postgres.conftest import Ask
from tests.support.builders.jobs import HOUR, a_job, a_key, claim_one, claim_some, employ, show, state_of

from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Intake, NewJob, OnConflict, Receipt
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.encoding import in_chunks
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.intake.insertion import Plan, needs_transaction, plan_insert
from perdure.engines.postgres.store import PostgresStore
from perdure.engines.shared.database.placeholders import numbered
from perdure.errors import ArgumentError, DuplicateJobError
from perdure.storage.records import JobFilter, Page
from perdure.storage.supply import Supply


def run_sync(plan: Plan, connection: psycopg.Connection[Any]) -> list[Receipt]:
    """Follow a plan on a blocking connection of the caller's."""
    try:
        step = next(plan)
        while True:
            cursor = connection.execute(step.sql, step.params)
            step = plan.send(cursor.fetchall() if cursor.description else [])
    except StopIteration as end:
        receipts: list[Receipt] = end.value
        return receipts


def mixed_jobs() -> list[NewJob]:
    return [a_job(), a_job(unique=a_key()), a_job(delay=HOUR, tags=("a", "b")), a_job(unique=a_key())]


async def test_a_plan_commits_or_rolls_back_with_the_callers_own_rows(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    statements = Naming(schema).statements("intake/intake.sql")
    for commit in (False, True):
        with psycopg.connect(postgres_url) as connection:
            receipts = run_sync(plan_insert(statements, mixed_jobs()), connection)
            assert [each.intake for each in receipts] == [Intake.NEW, Intake.NEW, Intake.NEW, Intake.EXISTING]
            assert await pg_store.jobs(JobFilter(), Page()) == []
            if not commit:
                connection.rollback()
        assert len(await pg_store.jobs(JobFilter(), Page())) == (3 if commit else 0)
    assert len(await claim_some(pg_store, await employ(pg_store))) == 2


async def test_a_plan_runs_on_a_driver_that_numbers_its_parameters(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        async with connection.transaction():
            for jobs in (mixed_jobs(), [a_job(meta='{"a":1}')], [a_job(unique=a_key(on_conflict=OnConflict.REPLACE))]):
                plan = plan_insert(Naming(schema).statements("intake/intake.sql"), jobs)
                try:
                    step = next(plan)
                    while True:
                        sql, names = numbered(step.sql)
                        rows = await connection.fetch(sql, *(step.params[name] for name in names))
                        step = plan.send([tuple(row) for row in rows])
                except StopIteration:
                    continue
    finally:
        await connection.close()
    assert len(await pg_store.jobs(JobFilter(), Page())) == 4


async def test_a_plan_that_is_refused_raises_where_it_is_run(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    await pg_store.insert([a_job(unique=a_key())])
    statements = Naming(schema).statements("intake/intake.sql")
    refused = [a_job(), a_job(unique=a_key(on_conflict=OnConflict.REJECT))]
    assert needs_transaction(refused)
    with pytest.raises(DuplicateJobError), psycopg.connect(postgres_url) as connection:
        run_sync(plan_insert(statements, refused), connection)
    assert len(await pg_store.jobs(JobFilter(), Page())) == 1


async def test_the_loser_of_an_open_transaction_waits_and_meets_the_winner(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    """The key is taken by a transaction not yet committed: no other can see it, and no other may take it."""
    statements = Naming(schema).statements("intake/intake.sql")
    winner = a_job(unique=a_key())
    with psycopg.connect(postgres_url) as connection:
        run_sync(plan_insert(statements, [winner]), connection)
        losing = asyncio.create_task(pg_store.insert([a_job(unique=a_key())]))
        await asyncio.wait([losing], timeout=0.2)
        assert not losing.done()
    [receipt] = await asyncio.wait_for(losing, 10)
    assert (receipt.job_id, receipt.intake) == (winner.id, Intake.EXISTING)


async def test_the_loser_of_a_transaction_that_rolls_back_is_the_winner(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    statements = Naming(schema).statements("intake/intake.sql")
    with psycopg.connect(postgres_url) as connection:
        run_sync(plan_insert(statements, [a_job(unique=a_key())]), connection)
        waiting = asyncio.create_task(pg_store.insert([a_job(unique=a_key())]))
        await asyncio.wait([waiting], timeout=0.2)
        connection.rollback()
    [receipt] = await asyncio.wait_for(waiting, 10)
    assert receipt.intake is Intake.NEW


@pytest.mark.parametrize("on_conflict", [OnConflict.RETURN, OnConflict.REPLACE])
async def test_e1_64_connections_behind_a_barrier_make_one_job(
    pg_store: PostgresStore, on_conflict: OnConflict
) -> None:
    stores = [pg_store.sibling() for _ in range(64)]
    try:
        await asyncio.gather(*(store.open() for store in stores))
        await asyncio.gather(*(store._intake._pool.rows("SELECT 1") for store in stores))
        for number in range(5):
            key = a_key(f"site {number}", on_conflict=on_conflict)
            answers = await asyncio.gather(*(store.insert([a_job(unique=key)]) for store in stores))
            receipts = [receipt for [receipt] in answers]
            assert [receipt.intake for receipt in receipts].count(Intake.NEW) == 1
            assert len({receipt.job_id for receipt in receipts}) == 1
    finally:
        await asyncio.gather(*(store.close() for store in stores))
    assert len(await pg_store.jobs(JobFilter(), Page())) == 5


async def test_batches_of_the_same_keys_in_any_order_do_not_deadlock(pg_store: PostgresStore) -> None:
    keys = [f"k{number}" for number in range(40)]

    async def insert(order: int) -> list[Receipt]:
        store = pg_store.sibling()
        await store.open()
        try:
            turned = keys[order:] + keys[:order]
            return await store.insert([a_job(unique=a_key(key)) for key in (turned if order % 2 else turned[::-1])])
        finally:
            await store.close()

    answers = await asyncio.wait_for(asyncio.gather(*(insert(order) for order in range(16))), 30)
    new = [receipt.job_id for receipts in answers for receipt in receipts if receipt.intake is Intake.NEW]
    assert len(new) == len(set(new)) == len(keys)


async def test_a_key_that_changes_hands_all_the_time_still_gives_an_answer(pg_store: PostgresStore) -> None:
    """Jobs with one key come and go as fast as they can; everyone who enqueues is answered."""
    worker_id = await employ(pg_store)
    done = asyncio.Event()

    async def come_and_go() -> None:
        while not done.is_set():
            for claim in await claim_some(pg_store, worker_id):
                await pg_store.cancel(JobFilter(ids=(claim.job_id,)), By("test"), 1)
            await pg_store.cancel(JobFilter(states=frozenset({JobState.READY})), By("test"), 10)

    going = asyncio.create_task(come_and_go())
    try:
        answers = await asyncio.gather(*(pg_store.insert([a_job(unique=a_key())]) for _ in range(60)))
    finally:
        done.set()
        await going
    assert all(receipt.intake in {Intake.NEW, Intake.EXISTING} for [receipt] in answers)


async def test_replace_with_a_time_moves_the_job_there(pg_store: PostgresStore) -> None:
    key = a_key(on_conflict=OnConflict.REPLACE)
    first = a_job(unique=key)
    await pg_store.insert([first])
    [receipt] = await pg_store.insert([a_job(unique=key, delay=HOUR, priority=1)])
    assert (receipt.job_id, receipt.intake) == (first.id, Intake.REPLACED)
    view = await show(pg_store, first.id)
    assert (view.state, view.priority) == (JobState.SCHEDULED, 1)
    [receipt] = await pg_store.insert([a_job(unique=key, run_at=await pg_store.now(), priority=0)])
    assert receipt.intake is Intake.REPLACED
    assert await state_of(pg_store, first.id) is JobState.READY
    assert (await claim_one(pg_store, await employ(pg_store))).job_id == first.id


async def test_a_large_batch_is_one_transaction(pg_store: PostgresStore, ask: Ask) -> None:
    jobs = [a_job() for _ in range(6_000)]
    await pg_store.insert(jobs)
    assert ask("SELECT count(*), count(DISTINCT xmin::text), count(DISTINCT created_at) FROM job") == [(6_000, 1, 1)]
    bad = [a_job() for _ in range(6_000)]
    bad[5_500] = replace(bad[5_500], priority=11)
    with pytest.raises(ArgumentError):
        await pg_store.insert(bad)
    assert ask("SELECT count(*) FROM job") == [(6_000,)]


async def test_a_large_batch_distinguishes_the_known_from_the_new(pg_store: PostgresStore) -> None:
    jobs = [a_job() for _ in range(6_000)]
    await pg_store.insert(jobs[1::2])
    receipts = await pg_store.insert(jobs)
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.EXISTING] * 3_000


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "not-a-uuid"},
        {"id": "a','b"},
        {"priority": 10},
        {"priority": -1},
        {"priority": 2**40},
        {"max_attempts": 2**40},
    ],
)
async def test_values_that_do_not_fit_are_refused(pg_store: PostgresStore, changes: dict[str, Any]) -> None:
    for batch in ([a_job(**changes)], [a_job(), a_job(**changes)], [a_job(unique=a_key()), a_job(**changes)]):
        with pytest.raises(ArgumentError):
            await pg_store.insert(batch)
    assert await pg_store.jobs(JobFilter(), Page()) == []


async def test_a_time_without_a_zone_is_refused_by_name(pg_store: PostgresStore) -> None:
    naive = (await pg_store.now()).replace(tzinfo=None)
    with pytest.raises(ArgumentError, match="run_at"):
        await pg_store.insert([a_job(run_at=naive)])


def test_chunks_are_bounded_by_number_and_by_weight() -> None:
    light = [a_job(id=new_job_id()) for _ in range(5_001)]
    assert [len(chunk) for chunk in in_chunks(light)] == [2_500, 2_500, 1]
    heavy = [a_job(args='"' + "x" * 1_500_000 + '"') for _ in range(5)]
    assert [len(chunk) for chunk in in_chunks(heavy)] == [2, 2, 1]
    assert [job for chunk in in_chunks(light, 7) for job in chunk] == light


async def test_a_fair_job_that_meets_a_taken_number_goes_to_the_end(pg_store: PostgresStore, ask: Ask) -> None:
    """The numbers between those of the sequence go round; this is the meeting after a full round."""
    await pg_store.insert([a_job(fair_key="a") for _ in range(3)])
    [[second]] = ask("SELECT seq FROM ready ORDER BY seq OFFSET 1 LIMIT 1")
    ask(f"SELECT setval('fair_seq', {second % 2**20}, false)")
    jobs = [a_job(fair_key="b"), a_job(fair_key="c")]
    assert await pg_store.insert(jobs) == [Receipt(job.id, Intake.NEW) for job in jobs]
    places = "SELECT fair_key, seq FROM ready WHERE job_id = %s"
    [[[key, end]], [[other_key, other]]] = [ask(places, job.id) for job in jobs]
    assert (key, end % 2**20, other_key, other) == (None, 0, "c", second + 1)
    assert ask("SELECT fair_key FROM job WHERE id = %s", jobs[0].id) == [("b",)]


async def test_the_sequence_leaves_room_for_fair_jobs(pg_store: PostgresStore, ask: Ask) -> None:
    await pg_store.insert([a_job() for _ in range(5)])
    await pg_store.insert([a_job(fair_key="a") for _ in range(5)])
    assert ask("SELECT DISTINCT fair_key, seq % 1048576 = 0 FROM ready ORDER BY 1") == [("a", False), (None, True)]


async def test_heavy_jobs_come_in_together_or_not_at_all(pg_store: PostgresStore) -> None:
    """Their arguments take several statements; the last of these is refused."""
    heavy = [a_job(args=f'{{"text":"{"x" * 60_000}"}}') for _ in range(100)]
    assert len(list(in_chunks(heavy))) > 1
    with pytest.raises(ArgumentError, match="meta"):
        await pg_store.insert([*heavy, a_job(meta="a\0b")])
    assert await pg_store.jobs(JobFilter(), Page()) == []
    receipts = await pg_store.insert(heavy)
    assert {receipt.intake for receipt in receipts} == {Intake.NEW}


@pytest.mark.parametrize("number", [10, 6_000])
async def test_ids_of_our_own_that_are_known_after_all_are_met_with_care(pg_store: PostgresStore, number: int) -> None:
    """The answer to the first try was lost: the second takes nothing for new that is not, and stores the rest."""
    jobs = [a_job() for _ in range(number)]
    await pg_store.insert(jobs[3:5])
    receipts = await pg_store.insert(Supply([*jobs, jobs[0]]))
    known = {3, 4, number}
    assert [n for n, receipt in enumerate(receipts) if receipt.intake is Intake.EXISTING] == sorted(known)
    assert [receipt.job_id for receipt in receipts] == [job.id for job in [*jobs, jobs[0]]]
    [count] = await pg_store.counts()
    assert (count.state, count.jobs) == (JobState.READY, number)


async def test_new_ids_are_not_looked_up_one_by_one(pg_store: PostgresStore) -> None:
    intake = pg_store._intake
    assert "ON CONFLICT" in intake._statements["insert_plain"]
    assert "ON CONFLICT" not in intake._for_new_ids


async def test_a_source_that_fails_is_not_taken_for_one_that_has_ended(pg_store: PostgresStore) -> None:
    """Nor where the first jobs are known already: what it had given before it failed is not stored by itself."""

    def source() -> Iterator[NewJob]:
        job = a_job()
        yield from (job, job)
        yield from (a_job() for _ in range(2_998))
        raise LookupError("no more of them")

    with pytest.raises(LookupError, match="no more of them"):
        await pg_store.insert(Supply(source()))
    assert await pg_store.jobs(JobFilter(), Page()) == []


async def test_who_is_called_off_stores_nothing_though_the_first_jobs_are_known(pg_store: PostgresStore) -> None:
    def source() -> Iterator[NewJob]:
        job = a_job()
        yield from (job, job)
        yield from (a_job() for _ in range(2_498))
        inserting.cancel()  # just before these are written
        yield from (a_job() for _ in range(500))

    inserting = asyncio.create_task(pg_store.insert(Supply(source())))
    with pytest.raises(asyncio.CancelledError):
        await inserting
    assert await pg_store.jobs(JobFilter(), Page()) == []


async def test_a_conflict_that_is_not_about_ids_is_reported_as_one_of_our_errors(
    pg_store: PostgresStore, ask: Ask
) -> None:
    """After a failover that has lost the state of sequences, say."""
    await pg_store.insert([a_job() for _ in range(3)])
    ask("SELECT setval('ready_seq', min(seq), false) FROM ready")
    with pytest.raises(ArgumentError, match="ready_pkey"):
        await pg_store.insert([a_job() for _ in range(3)])


async def test_a_state_that_only_a_newer_release_knows_strands_no_other_job(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    [receipt] = await pg_store.insert([a_job(unique=a_key())])
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"UPDATE \"{schema}\".job SET unique_states = unique_states || ',dreaming'")
    claim = await claim_one(pg_store, await employ(pg_store))
    assert (claim.job_id, claim.unique) == (receipt.job_id, a_key())
