"""What only this engine's claims have: answers that get lost, cursors, and a snapshot held open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask, eventually
from tests.support.builders.jobs import a_job, apply, claim_one, claim_some, employ, enqueue

from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.engines.postgres.claims.cursors import Cursors
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import StoreUnavailable
from perdure.storage.records import Wanted

_fetch = Wire.fetch


@pytest.fixture
def lose_answers(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every claim is committed, and its answer never arrives."""

    async def lossy(wire: Wire, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        rows = await _fetch(wire, sql, params)
        if "claim_token" in sql and "picked" in sql:
            wire.drop()
            raise psycopg.OperationalError("the connection was lost")
        return rows

    monkeypatch.setattr(Wire, "fetch", lossy)
    return monkeypatch


async def test_claims_whose_answer_was_lost_are_handed_over_by_the_next(
    pg_store: PostgresStore, lose_answers: pytest.MonkeyPatch
) -> None:
    """The worker lives, so no rescuer would ever come for them."""
    worker_id = await employ(pg_store)
    jobs = [a_job() for _ in range(5)]
    await pg_store.insert(jobs)
    with pytest.raises(StoreUnavailable):
        await claim_some(pg_store, worker_id, 3)
    lose_answers.undo()
    found = await claim_some(pg_store, worker_id, 3)
    assert {claim.job_id for claim in found} == {job.id for job in jobs[:3]}
    rest = await claim_some(pg_store, worker_id, 3)
    assert {claim.job_id for claim in rest} == {job.id for job in jobs[3:]}
    assert await claim_some(pg_store, worker_id, 3) == []
    await apply(pg_store, *(transition.succeeded(claim, None, ()) for claim in found + rest))


async def test_what_the_worker_knows_it_holds_is_not_handed_over_again(
    pg_store: PostgresStore, lose_answers: pytest.MonkeyPatch
) -> None:
    worker_id = await employ(pg_store)
    lose_answers.undo()
    known = await start_one(pg_store, worker_id)
    lost_id = await enqueue(pg_store)
    with lose_answers.context() as patch:
        patch.setattr(Wire, "_rows", _lost)
        with pytest.raises(StoreUnavailable):
            await claim_some(pg_store, worker_id)
    found = await claim_some(pg_store, worker_id)
    assert [claim.job_id for claim in found] == [lost_id]
    assert known.job_id != lost_id


async def test_an_aged_job_is_handed_over_although_the_rest_of_its_claim_failed(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken from an aged priority is committed before the rest is asked for."""
    worker_id = await employ(pg_store)
    old, urgent = a_job(priority=9), a_job(priority=0)
    await pg_store.insert([old, urgent])
    parts = [Wanted("default", 1, 9), Wanted("default", 1)]
    fetch, looks = Wire.fetch, 0

    async def fail_at_the_second(wire: Wire, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        nonlocal looks
        looks += "claim_token" in sql
        if looks == 2:
            raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
        return await fetch(wire, sql, params)

    with monkeypatch.context() as patch:
        patch.setattr(Wire, "fetch", fail_at_the_second)
        with pytest.raises(StoreUnavailable):
            await pg_store.claim(worker_id, parts)
    found = await pg_store.claim(worker_id, parts)
    found += await pg_store.claim(worker_id, parts)
    assert {claim.job_id for claim in found} == {old.id, urgent.id}


async def test_a_claim_that_arrives_after_its_worker_gave_it_up_gets_nothing(pg_store: PostgresStore) -> None:
    """Its request was under way in the network while the worker had already asked what it holds."""
    worker_id = await employ(pg_store)
    await pg_store._claims._pool.rows(pg_store._claims._statements["next_epoch"], {"worker": worker_id})
    await enqueue(pg_store)
    late = {"worker": worker_id, "epoch": 0, "queues": "{default}", "limits": "{10}", "now": None}
    assert await pg_store._claims._pool.rows(pg_store._claims._statements["claim_front"], late) == []
    assert len(await claim_some(pg_store, worker_id)) == 1


@asynccontextmanager
async def inserts_under_way(
    store: PostgresStore, postgres_url: str, number: int = 1, **changes: Any
) -> AsyncIterator[list[JobId]]:
    """Jobs whose transaction has their numbers from the start and commits at the end."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        receipts = await store.through(connection).insert([a_job(**changes) for _ in range(number)])
        yield [receipt.job_id for receipt in receipts]
        await connection.commit()


async def test_a_cancelled_claim_loses_no_job(pg_store: PostgresStore) -> None:
    worker_id = await employ(pg_store)
    jobs = [a_job() for _ in range(200)]
    await pg_store.insert(jobs)
    taken: list[Claim] = []
    for turn in range(60):
        claiming = asyncio.create_task(claim_some(pg_store, worker_id, 10))
        for _ in range(turn % 6):
            await asyncio.sleep(0)
        claiming.cancel()
        try:
            taken += await claiming
        except asyncio.CancelledError:
            continue
    async with asyncio.timeout(20):
        while len(taken) < len(jobs):
            taken += await claim_some(pg_store, worker_id, 10)
    assert sorted(claim.job_id for claim in taken) == sorted(job.id for job in jobs)


async def test_a_job_committed_late_is_found_although_later_ones_were_claimed(
    pg_store: PostgresStore, postgres_url: str
) -> None:
    """A long transaction took its number first and commits last."""
    worker_id = await employ(pg_store)
    async with inserts_under_way(pg_store, postgres_url) as [late]:
        for _ in range(5):
            await enqueue(pg_store)
            await claim_one(pg_store, worker_id)
        assert await claim_some(pg_store, worker_id) == []
    claims = await eventually(lambda: claim_some(pg_store, worker_id))
    assert [claim.job_id for claim in claims] == [late]


@pytest.mark.parametrize(("passed", "found_after"), [(3, 1), (7, 10)], ids=["look back", "full look"])
async def test_a_job_committed_late_is_found_while_there_is_always_another_to_claim(
    pg_store: PostgresStore, postgres_url: str, passed: int, found_after: int
) -> None:
    """At the next second's look back if the claims passed its number within five seconds, else at a full look."""
    seconds = [100.0]
    pg_store._claims._cursors = Cursors(lambda: seconds[0])
    worker_id = await employ(pg_store)
    async with inserts_under_way(pg_store, postgres_url) as [late]:
        await pg_store.insert([a_job() for _ in range(50)])
        await claim_some(pg_store, worker_id, 1)
        for _ in range(passed):
            seconds[0] += 1
            assert late not in [claim.job_id for claim in await claim_some(pg_store, worker_id, 1)]
    waited = 0
    while late not in [claim.job_id for claim in await claim_some(pg_store, worker_id, 1)]:
        seconds[0] += 1
        waited += 1
        assert waited <= found_after


@pytest.mark.parametrize("fair_key", [None, "a share"])
async def test_of_many_jobs_committed_late_the_others_follow_the_first(
    pg_store: PostgresStore, postgres_url: str, fair_key: str | None
) -> None:
    """They are more than one look takes; they do not wait for a look from the beginning each."""
    seconds = [100.0]
    pg_store._claims._cursors = Cursors(lambda: seconds[0])
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job(fair_key=fair_key) for _ in range(2)])
    async with inserts_under_way(pg_store, postgres_url, 20, fair_key=fair_key) as late:
        await pg_store.insert([a_job() for _ in range(50)])
        for _ in range(9):
            await claim_some(pg_store, worker_id, 1)
            seconds[0] += 1
    taken: list[JobId] = []
    for _ in range(40):
        seconds[0] += 0.05
        taken += [claim.job_id for claim in await claim_some(pg_store, worker_id, 1)]
    assert set(late) <= set(taken)


async def test_a_job_committed_late_is_found_in_a_queue_that_is_seldom_asked_for(
    pg_store: PostgresStore, postgres_url: str
) -> None:
    """Its worker has room for one of its jobs, and asks for those of another queue ten times a second."""
    seconds = [100.0]
    pg_store._claims._cursors = Cursors(lambda: seconds[0])
    worker_id = await employ(pg_store)
    async with inserts_under_way(pg_store, postgres_url, queue="seldom") as [late]:
        await pg_store.insert([a_job(queue="seldom") for _ in range(50)])
        for _ in range(7):
            await claim_some(pg_store, worker_id, 1, "seldom")
            seconds[0] += 1
    await pg_store.insert([a_job() for _ in range(300)])
    waited = 0
    while late not in [claim.job_id for claim in await claim_some(pg_store, worker_id, 1, "seldom")]:
        for _ in range(10):
            seconds[0] += 0.1
            await claim_some(pg_store, worker_id, 1)
        waited += 1
        assert waited <= 10


async def test_a_job_committed_late_ages_behind_a_stream_of_urgent_ones(
    pg_store: PostgresStore, postgres_url: str
) -> None:
    """No look gets as far as its priority; what has aged is seen all the same, and claimed by its level."""
    seconds = [100.0]
    pg_store._claims._cursors = Cursors(lambda: seconds[0])
    worker_id = await employ(pg_store)
    async with inserts_under_way(pg_store, postgres_url, priority=9) as [late]:
        for _ in range(9):
            await enqueue(pg_store)
            await claim_some(pg_store, worker_id)
            seconds[0] += 1
        await pg_store.insert([a_job(priority=0) for _ in range(50)])
        await claim_some(pg_store, worker_id, 1)
    for _ in range(10):
        seconds[0] += 1
        await claim_some(pg_store, worker_id, 1)
        fronts = await pg_store.fronts(["default"], 3)
    assert [front.priority for front in fronts] == [0, 0, 0, 9]
    [aged] = await pg_store.claim(worker_id, [Wanted("default", 1, 9)])
    assert aged.job_id == late


async def test_in_a_database_put_back_new_jobs_are_found_at_once(pg_store: PostgresStore, ask: Ask) -> None:
    """Its sequence gives numbers again that were claimed once, while another queue has always something to claim."""
    seconds = [100.0]
    pg_store._claims._cursors = Cursors(lambda: seconds[0])
    worker_id = await employ(pg_store)
    both = [Wanted("default", 10), Wanted("busy", 1)]
    await pg_store.insert([a_job() for _ in range(50)])
    for _ in range(10):
        await pg_store.claim(worker_id, both)
        seconds[0] += 1
    ask("SELECT setval('ready_seq', 10 * 1048576)")
    await pg_store.insert([a_job(queue="busy") for _ in range(30)])
    seconds[0] += 11
    await pg_store.claim(worker_id, both)
    for _ in range(9):
        seconds[0] += 0.1
        job_id = await enqueue(pg_store)
        assert job_id in [claim.job_id for claim in await pg_store.claim(worker_id, both)]


async def test_in_a_database_put_back_a_worker_claims_on(
    pg_store: PostgresStore, lose_answers: pytest.MonkeyPatch, ask: Ask
) -> None:
    """The copy knows neither the worker's epoch nor the newest token; and then an answer is lost once more."""
    worker_id = await employ(pg_store)
    await enqueue(pg_store)
    with pytest.raises(StoreUnavailable):
        await claim_some(pg_store, worker_id)
    with lose_answers.context() as patch:
        patch.setattr(Wire, "fetch", _fetch)
        assert len(await claim_some(pg_store, worker_id)) == 1
        await put_back(pg_store, ask)
        await enqueue(pg_store)
        await claim_one(pg_store, worker_id)
        await put_back(pg_store, ask)
        lost = await enqueue(pg_store)
    with pytest.raises(StoreUnavailable):
        await claim_some(pg_store, worker_id)
    lose_answers.undo()
    assert (await claim_one(pg_store, worker_id)).job_id == lost


async def test_g3_a_number_of_the_sequence_that_comes_again_makes_another_token(
    pg_store: PostgresStore, ask: Ask
) -> None:
    """No client has reconnected, and the sequence is not brought up to the clock: what is drawn at random is enough."""
    worker_id = await employ(pg_store)
    await start_one(pg_store, worker_id)
    [[last]] = ask("SELECT last_value FROM claim_token")
    tokens = set()
    for _ in range(10):
        ask(f"SELECT setval('claim_token', {last})")
        tokens.add((await start_one(pg_store, worker_id)).token)
    assert {token // 2**20 for token in tokens} == {last // 2**20 + 1}
    assert len(tokens) == 10


async def test_g3_the_first_claim_over_a_connection_brings_tokens_up_to_the_clock(
    pg_store: PostgresStore, ask: Ask
) -> None:
    worker_id = await employ(pg_store)
    for _ in range(2):
        [[now]] = ask("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        token = (await start_one(pg_store, worker_id)).token
        assert token > now * 2**20
        await put_back(pg_store, ask)


async def test_under_a_held_snapshot_a_claim_does_not_wade_through_the_dead(
    pg_store: PostgresStore, postgres_url: str, schema: str
) -> None:
    """A look that goes on from where we were touches as many pages as on the first day; one from the front does not."""
    worker_id = await employ(pg_store)
    async with await psycopg.AsyncConnection.connect(postgres_url) as holder:
        await holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await holder.execute(f'SELECT count(*) FROM "{schema}".ready')
        await pg_store.insert([a_job() for _ in range(20_000)])
        for _ in range(39):
            claims = await pg_store.claim(worker_id, [Wanted("default", 500)])
            assert len(claims) == 500
        onward = await pages_touched(pg_store, worker_id, "claim_onward")
        front = await pages_touched(pg_store, worker_id, "claim_front")
    assert onward * 5 < front, (onward, front)


async def test_no_look_takes_more_than_wanted_from_any_queue(pg_store: PostgresStore) -> None:
    """Ten priorities are ten scans under one limit."""
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job(queue=queue, priority=n % 10) for queue in "ab" for n in range(100)])
    for _ in range(8):
        claims = await pg_store.claim(worker_id, [Wanted("a", 7), Wanted("b", 3), Wanted("a", 2)])
        assert sum(claim.queue == "a" for claim in claims) == 9
        assert sum(claim.queue == "b" for claim in claims) == 3


async def test_rows_that_others_have_locked_are_passed_over(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    worker_id = await employ(pg_store)
    await pg_store.insert([a_job() for _ in range(10)])
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        await other.execute(f'SELECT FROM "{schema}".ready ORDER BY seq LIMIT 4 FOR UPDATE')
        claims = await asyncio.wait_for(claim_some(pg_store, worker_id, 100), 10)
        assert len(claims) == 6
    rest = await eventually(lambda: claim_some(pg_store, worker_id))
    assert len(rest) == 4
    assert ask("SELECT count(*) FROM lease") == [(10,)]


async def put_back(store: PostgresStore, ask: Ask) -> None:
    """A copy takes over that has seen nothing of what was claimed; all connections are cut."""
    ask("UPDATE worker SET epoch = 0")
    ask("DELETE FROM lease")
    ask("SELECT setval('claim_token', 1, false)")
    ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = current_schema()")

    async def all_are_cut() -> bool:
        return not any(wire.is_sound() for pool in store._pools for wire in pool._idle)

    await eventually(all_are_cut)


async def start_one(store: PostgresStore, worker_id: Any) -> Claim:
    await enqueue(store)
    return await claim_one(store, worker_id)


async def pages_touched(store: PostgresStore, worker_id: Any, name: str) -> int:
    """The pages of `ready` that a look for five jobs reads; the look is undone."""
    lanes = number_array(store._claims._cursors.starts("default"))
    params: Params = {
        "worker": worker_id,
        "epoch": 0,
        "queues": "{default}",
        "limits": "{5}",
        "now": None,
        "starts": text_array([lanes]),
    }

    class Undo(Exception):  # noqa: N818 - no error
        pages = 0

    async def look(wire: Wire) -> None:
        sql = f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {store._claims._statements[name]}"
        lines = [line for (line,) in await wire.fetch(sql, params)]
        where = next(number for number, line in enumerate(lines) if "CTE picked" in line)
        touched = next(line for line in lines[where:] if "Buffers:" in line)
        undo = Undo()
        undo.pages = sum(int(word.split("=")[1]) for word in touched.split() if word.startswith(("hit=", "read=")))
        raise undo

    try:
        await store._claims._pool.transaction(look)
    except Undo as undo:
        return undo.pages
    raise AssertionError("unreachable")


def _lost(wire: Wire, result: object) -> list[tuple[Any, ...]]:
    wire.drop()
    raise psycopg.OperationalError("the connection was lost")


@pytest.mark.parametrize("name", ["claim_front", "claim_onward", "claim_onward_with_returns"])
def test_every_way_to_claim_shares_one_end_that_draws_tokens_at_random(name: str) -> None:
    naming = Naming("public")
    statement = naming.statements("claims/claims.sql")[name]
    end = naming.statements("claims/taking.sql")["take_picked"]
    assert statement.endswith(end)
    assert "random()" in end
    assert "random()" not in statement.removesuffix(end)
