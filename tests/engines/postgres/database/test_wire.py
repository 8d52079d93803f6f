"""Statements that travel together: one round, the answers of each, and the first error among them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask

from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.wire import Wire
from perdure.errors import ArgumentError, StoreUnavailable


@pytest.fixture
async def pool(postgres_url: str, schema: str, ask: Ask) -> Any:
    del schema
    pool = Pool(Server(postgres_url))
    pool.open()
    await pool.run(lambda wire: wire.script("CREATE TEMP TABLE jotted (n int PRIMARY KEY)"))
    try:
        yield pool
    finally:
        await pool.close()


def jot(wire: Wire, number: int | str) -> None:
    wire.defer("INSERT INTO pg_temp.jotted VALUES (%(n)s::int)", {"n": number})


async def count(wire: Wire) -> int:
    [[found]] = await wire.fetch("SELECT count(*) FROM pg_temp.jotted")
    return int(found)


async def test_what_was_deferred_runs_before_what_is_fetched(pool: Pool) -> None:
    async def work(wire: Wire) -> int:
        jot(wire, 1)
        jot(wire, 2)
        return await count(wire)

    assert await pool.run(work) == 2


async def test_each_of_several_statements_answers(pool: Pool) -> None:
    async def work(wire: Wire) -> list[list[tuple[Any, ...]]]:
        jot(wire, 1)
        return await wire.fetch_each(("SELECT 1 UNION ALL SELECT 2", None), ("SELECT %(a)s::text", {"a": "x"}))

    assert await pool.run(work) == [[(1,), (2,)], [("x",)]]


async def test_a_deferred_statement_that_fails_undoes_the_transaction_and_spares_the_session(pool: Pool) -> None:
    sessions = []

    async def work(wire: Wire) -> None:
        sessions.append(wire)
        jot(wire, 1)
        jot(wire, 1)

    with pytest.raises(ArgumentError, match="duplicate key"):
        await pool.transaction(work)
    assert await pool.run(count) == 0
    assert pool._idle == sessions


async def test_what_cannot_be_sent_is_refused_before_anything_is(pool: Pool) -> None:
    async def work(wire: Wire) -> None:
        jot(wire, 1)
        jot(wire, "\0")

    with pytest.raises(ArgumentError, match="NUL"):
        await pool.transaction(work)
    assert await pool.run(count) == 0


async def test_work_that_raises_before_it_asks_leaves_nothing_behind(pool: Pool) -> None:
    async def work(wire: Wire) -> None:
        jot(wire, 1)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await pool.transaction(work)
    assert await pool.run(count) == 0


async def test_a_session_lost_under_several_statements_is_unavailable(pool: Pool) -> None:
    async def work(wire: Wire) -> None:
        jot(wire, 1)
        await wire.fetch("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreUnavailable):
        await pool.transaction(work)

    async def another(wire: Wire) -> int:
        wire.defer("SELECT 1")
        [[answer]] = await wire.fetch("SELECT 2")
        return int(answer)

    assert await pool.run(another) == 2


async def test_statements_that_stay_unprepared_travel_together_too(postgres_url: str, pool: Pool) -> None:
    del pool
    connection = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)
    wire = Wire(connection, prepare=False)
    try:
        wire.defer("SELECT %(a)s::int", {"a": 1})
        assert await wire.fetch("SELECT %(a)s::int", {"a": 2}) == [(2,)]
    finally:
        wire.drop()


async def test_what_is_posted_runs_behind_in_a_transaction_of_its_own(pool: Pool) -> None:
    async def work(wire: Wire) -> list[tuple[Any, ...]]:
        return await wire.fetch_and_post(
            ("INSERT INTO pg_temp.jotted VALUES (1) RETURNING n", None),
            ("INSERT INTO pg_temp.jotted SELECT count(*) + 10 FROM pg_temp.jotted", None),
        )

    assert await pool.run(work) == [(1,)]
    assert await pool.rows("SELECT n FROM pg_temp.jotted ORDER BY n") == [(1,), (11,)]


@pytest.mark.parametrize("then", ["fetch", "transaction", "script", "post"])
async def test_a_session_with_something_posted_is_used_again_for_any_query(pool: Pool, then: str) -> None:
    posting = ("SELECT 1", None), ("SELECT pg_sleep(0.05)", None)
    sessions = list[Wire]()

    async def post(wire: Wire) -> None:
        sessions.append(wire)
        assert await wire.fetch_and_post(*posting) == [(1,)]

    await pool.run(post)
    match then:
        case "fetch":
            assert await pool.run(count) == 0
        case "transaction":
            assert await pool.transaction(count) == 0
        case "script":
            await pool.run(lambda wire: wire.script("SELECT 1; SELECT 2"))
        case _:
            await pool.run(post)
    assert await pool.run(count) == 0
    assert pool._idle == sessions[:1]


async def test_what_is_posted_behind_a_statement_that_fails_runs_all_the_same(pool: Pool) -> None:
    async def work(wire: Wire) -> None:
        await wire.fetch_and_post(("SELECT 1 / 0", None), ("INSERT INTO pg_temp.jotted VALUES (1)", None))

    with pytest.raises(ArgumentError, match="division by zero"):
        await pool.run(work)
    assert await pool.run(count) == 1


async def test_an_error_in_a_posted_statement_is_raised_to_no_caller(pool: Pool) -> None:
    async def work(wire: Wire) -> list[tuple[Any, ...]]:
        return await wire.fetch_and_post(("SELECT 1", None), ("SELECT 1 / 0", None))

    assert await pool.run(work) == [(1,)]
    assert await pool.run(count) == 0


async def test_a_session_lost_under_what_was_posted_is_replaced(pool: Pool) -> None:
    async def work(wire: Wire) -> list[tuple[Any, ...]]:
        end = "SELECT pg_terminate_backend(pg_backend_pid())"
        return await wire.fetch_and_post(("SELECT 1", None), (end, None))

    assert await pool.run(work) == [(1,)]
    for _ in range(3):  # until the loss is seen
        try:
            assert await pool.rows("SELECT 2") == [(2,)]
        except StoreUnavailable:
            continue
        break
    else:
        pytest.fail("the lost session is used for ever")
