"""Behind a pooler in transaction mode nothing of ours stays in a session, and nothing of another's session is ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, cast
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
from tests.conftest import OpenStore
from tests.pooler.conftest import StartPooler
from tests.support.builders.jobs import a_job, claim_one, employ, enqueue
from tests.support.databases.behind import query, with_option
from tests.support.programs.effects import TWICE, at_work
from tests.support.waiting import PATIENCE
from tests.support.working import found

from perdure import App, Context, Rate
from perdure.app.connect import store_for
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Intake
from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.sessions import Terms
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import ArgumentError
from perdure.storage.port import Store
from perdure.storage.records import Wanted

_SETTINGS: Final = (  # those of plpgsql appear in a session with the first function that it makes
    "SELECT name, setting FROM pg_settings"
    " WHERE name <> 'application_name' AND NOT starts_with(name, 'plpgsql.') ORDER BY name"
)
_LEFT: Final = (
    "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),"
    " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_cursors)"
)


@pytest.fixture
async def single_url(direct_url: str, start_pooler: StartPooler) -> str:
    """The database through a pooler with one session for all its clients."""
    return start_pooler(size=1).url(direct_url)


@pytest.fixture
async def neighbour(single_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Another client of the same pool."""
    plain = single_url.replace("schema=perdure&", "")
    async with await psycopg.AsyncConnection.connect(plain, autocommit=True, prepare_threshold=None) as connection:
        yield connection


async def ask(connection: psycopg.AsyncConnection[Any], sql: str) -> list[tuple[Any, ...]]:
    return await (await connection.execute(sql.encode())).fetchall()


def named(url: str) -> str:
    """The database of a URL."""
    return urlsplit(url).path[1:]


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = cast("PostgresStore", store_for(url, **options))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_another_client_of_the_pool_sees_none_of_our_settings(
    single_url: str, neighbour: psycopg.AsyncConnection[Any]
) -> None:
    before = await ask(neighbour, _SETTINGS)
    app = App(single_url)
    done: list[str] = []

    @app.job(retry=TWICE)
    async def fail_once(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OSError
        done.append("retried")

    @app.job(gates=[Rate(1000, "1s")])
    async def gated() -> None:
        done.append("gated")

    @app.job
    async def child(number: int) -> int:
        return number

    @app.job
    async def parent(ctx: Context) -> list[int]:
        await ctx.step("first", lambda: 1)
        return await ctx.gather([child.call(1), child.call(2)])

    @app.job
    async def written(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("SELECT 1")

    @app.cron("@every 1s")
    async def tick() -> None:
        done.append("ticked")

    async with app, asyncio.timeout(PATIENCE), at_work(app):
        handles = [await fail_once.enqueue(), await gated.enqueue(), await parent.enqueue()]
        handles.append(await written.using(delay="10ms").enqueue())
        for handle in handles:
            await handle.result(timeout="30s")
        while "ticked" not in done:
            await asyncio.sleep(0.05)
            assert await ask(neighbour, _SETTINGS) == before
    assert {"retried", "gated", "ticked"} <= set(done)
    assert await ask(neighbour, _SETTINGS) == before
    assert await ask(neighbour, _LEFT) == [(0, 0, 0, 0)]


async def test_migrations_leave_no_settings_behind(postgres_url: str, start_pooler: StartPooler) -> None:
    pooled = start_pooler(size=1).url(postgres_url)
    url = with_option(pooled, "schema", "behind_a_pooler")
    async with await psycopg.AsyncConnection.connect(pooled, autocommit=True) as neighbour:
        before = await ask(neighbour, _SETTINGS)
        async with opened(url) as store:
            try:
                assert await store.migrate()
                await store.check_schema()
            finally:
                await neighbour.execute("DROP SCHEMA behind_a_pooler CASCADE")
        assert await ask(neighbour, _SETTINGS) == before


async def test_our_settings_hold_against_those_of_the_database(direct_url: str, start_pooler: StartPooler) -> None:
    query(direct_url, f"ALTER DATABASE {named(direct_url)} SET default_transaction_isolation = serializable")
    query(direct_url, f"ALTER DATABASE {named(direct_url)} SET synchronous_commit = off")
    query(direct_url, f"ALTER DATABASE {named(direct_url)} SET TimeZone = 'Asia/Tokyo'")
    asked = ("transaction_isolation", "synchronous_commit", "TimeZone", "enable_seqscan", "search_path")
    sql = "SELECT " + ", ".join(f"current_setting('{name}')" for name in asked)
    ours = ("read committed", "on", "UTC", "off", "pg_catalog")
    try:
        async with opened(start_pooler().url(direct_url)) as store:
            for pool in store._pools[:-1]:
                assert await pool.rows(sql) == [ours]
                assert await pool.transaction(lambda wire: wire.fetch(sql)) == [ours]
            await enqueue(store)
            claim = await claim_one(store, await employ(store))
            assert claim.claimed_at.utcoffset() == timedelta(0)
    finally:
        query(direct_url, f"ALTER DATABASE {named(direct_url)} RESET ALL")


async def test_a_handlers_transaction_commits_durably_for_every_setting_of_the_database(
    direct_url: str, start_pooler: StartPooler
) -> None:
    """The setting ends with the transaction; only a trigger can see it."""
    query(direct_url, "CREATE TABLE seen (setting text)")
    query(
        direct_url,
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO perdure.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$",
    )
    query(
        direct_url,
        "CREATE CONSTRAINT TRIGGER look AFTER INSERT ON finished DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION look()",
    )
    query(direct_url, f"ALTER DATABASE {named(direct_url)} SET synchronous_commit = off")
    try:
        async with opened(start_pooler().url(direct_url)) as store:
            await enqueue(store)
            claim = await claim_one(store, await employ(store))
            effects = await store.begin_effects()
            async with effects.block() as connection:
                await connection.execute("SELECT 1")
            await effects.commit_with(transition.succeeded(claim, None, ()))
        assert query(direct_url, "SELECT setting FROM seen") == [("on",)]
    finally:
        query(direct_url, f"ALTER DATABASE {named(direct_url)} RESET ALL")
        query(direct_url, "DROP TABLE seen")
        query(direct_url, "DROP FUNCTION look() CASCADE")


async def test_a_statement_that_fails_gives_the_session_back(
    single_url: str, neighbour: psycopg.AsyncConnection[Any]
) -> None:
    """A transaction that was aborted and not ended would keep the only session from everybody."""
    async with opened(single_url) as store:
        with pytest.raises(ArgumentError):
            await store._desk.rows("SELECT %(text)s::int", {"text": "no number"})
        assert await asyncio.wait_for(ask(neighbour, "SELECT 1"), PATIENCE) == [(1,)]
        with pytest.raises(ArgumentError):
            await store._desk.transaction(lambda wire: wire.fetch("SELECT %(text)s::int", {"text": "no number"}))
        assert await asyncio.wait_for(ask(neighbour, "SELECT 1"), PATIENCE) == [(1,)]
        assert [receipt.intake for receipt in await store.insert([a_job()])] == [Intake.NEW]


async def test_one_statement_is_one_round(engine_url: str) -> None:
    """What begins, sets up and ends a transaction travels with the statement that it is for."""
    wire = await Server(engine_url.replace("schema=perdure&", "")).wire(Terms(), prepare=True)
    rounds: list[None] = []
    start_sending = wire._start_sending

    def counted() -> None:
        rounds.append(None)
        start_sending()

    wire._start_sending = counted  # type: ignore[method-assign]
    assert await wire.fetch("SELECT 42") == [(42,)]
    assert len(rounds) == 1
    wire.drop()


async def test_a_worker_is_woken_by_the_clock_where_nothing_can_be_heard(
    store: Store, other_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.engines.postgres.fleet.listener._POLL_INTERVAL_SECONDS", 0.01)
    async with store.wakeups() as items:
        for _ in range(3):
            await asyncio.wait_for(anext(items), PATIENCE)


async def test_notifications_arrive_by_the_listen_url(
    engine_url: str, direct_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent through the pooler, heard without it, and no clock has helped."""
    monkeypatch.setattr("perdure.engines.postgres.fleet.listener._POLL_INTERVAL_SECONDS", 3600.0)
    async with (
        opened(engine_url) as sender,
        opened(engine_url, listen_url=direct_url) as listener,
        listener.wakeups() as items,
    ):
        await asyncio.wait_for(anext(items), PATIENCE)  # it listens now
        await sender.insert([a_job()])
        sender.ring(["default"])
        await asyncio.wait_for(anext(items), PATIENCE)


@pytest.mark.parametrize("way", ["pooled", "direct"])
async def test_a_worker_claims_again_after_a_copy_with_an_older_epoch_took_over(
    engine_url: str, direct_url: str, way: str
) -> None:
    """A pooler keeps its clients through a failover, so no lost connection tells us of it."""
    async with opened(engine_url if way == "pooled" else direct_url) as store:
        worker_id = await employ(store)
        await enqueue(store)
        await claim_one(store, worker_id)
        query(direct_url, "UPDATE {worker} SET epoch = epoch - 1")
        job_id = await enqueue(store)

        async def look() -> list[str]:
            return [claim.job_id for claim in await store.claim(WorkerId(worker_id), [Wanted("default", 10)])]

        assert await found(look) == [job_id]


async def test_callers_enqueue_in_their_own_transaction_through_the_pooler(engine_url: str) -> None:
    plain = engine_url.replace("schema=perdure&", "")
    async with App(engine_url) as app:

        @app.job
        async def greet(name: str) -> None:
            pass

        async with await psycopg.AsyncConnection.connect(plain, prepare_threshold=None) as ours:
            for number in range(10):
                await greet.using(connection=ours).enqueue(f"psycopg {number}")
            await ours.rollback()
            await greet.using(connection=ours).enqueue("psycopg")
        options = {"statement_cache_size": 0}
        theirs = await asyncpg.connect(plain, **options)
        try:
            async with theirs.transaction():
                await greet.using(connection=theirs).enqueue("asyncpg")
            await greet.using(connection=theirs).enqueue("asyncpg, without a transaction")
        finally:
            await theirs.close()
        counts = await (await app.store()).counts()
    assert sum(count.jobs for count in counts) == 3
