"""Connections that break, servers that refuse, and what the caller is told."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from tests.engines.postgres.conftest import Ask, eventually
from tests.support.builders.jobs import a_job, claim_one, employ, enqueue
from tests.support.databases.behind import with_option

from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.faults import translate
from perdure.engines.postgres.database.wire import Wire
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import ArgumentError, ForkError, SettingsError, StoreError, StoreRefused, StoreUnavailable
from perdure.storage.records import JobFilter, Page

OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = current_schema()"
WAITING = f"{OURS} AND wait_event_type = 'Lock'"
CUT = f"SELECT pg_terminate_backend(pid) FROM ({OURS}) ours"
CUT_WAITING = f"SELECT pg_terminate_backend(pid) FROM ({WAITING}) waiting"
SECRET = "hunter2-and-more"  # noqa: S105 - the point of the tests is that it never shows


async def test_connections_cut_while_idle_cause_no_error(pg_store: PostgresStore, ask: Ask) -> None:
    worker_id = await employ(pg_store)
    for _ in range(3):
        job_id = await enqueue(pg_store)
        ask(CUT)
        claim = await claim_one(pg_store, worker_id)
        assert claim.job_id == job_id
        ask(CUT)
        assert (await pg_store.acknowledge([transition.succeeded(claim, None, ())])).applied == 1
        ask(CUT)
        assert await pg_store.beat(worker_id)
        assert (await pg_store.promote(10)).total == 0
        assert len(await pg_store.jobs(JobFilter(), Page())) > 0


@pytest.mark.parametrize("number", [1, 2], ids=["one job, and a ring behind it", "two jobs"])
async def test_connections_cut_while_the_loop_is_busy_cause_no_error(
    pg_store: PostgresStore, ask: Ask, number: int
) -> None:
    """The event loop has not turned since: whoever holds it was busy with something else, or it only runs for calls."""
    for _ in range(3):
        receipts = await pg_store.insert([a_job() for _ in range(number)])
        assert all(receipt.intake is Intake.NEW for receipt in receipts)
        ask(CUT)
        for pool in pg_store._pools:
            for wire in pool._idle:
                hung_up = select.poll()
                hung_up.register(wire._socket, select.POLLRDHUP)
                assert hung_up.poll(10_000)


async def test_a_connection_whose_statements_the_server_forgot_is_not_used_again(pg_store: PostgresStore) -> None:
    """As behind a pooler that lends another session, or after a DEALLOCATE ALL."""
    worker_id = await employ(pg_store)
    assert await pg_store.beat(worker_id)
    for pool in pg_store._pools:
        for wire in pool._idle:
            await wire.script("DEALLOCATE ALL")
    with pytest.raises(StoreError, match="prepared statement"):
        await pg_store.beat(worker_id)
    assert await pg_store.beat(worker_id)


async def test_a_connection_that_led_to_a_standby_is_not_used_again(pg_store: PostgresStore) -> None:
    """The server's name leads to the primary again, and only a new connection gets there."""
    worker_id = await employ(pg_store)
    for pool in pg_store._pools:
        for wire in pool._idle:
            await wire.script("SET default_transaction_read_only = on")
    with pytest.raises(StoreRefused, match="read-only"):
        await pg_store.beat(worker_id)
    assert await pg_store.beat(worker_id)


async def test_a_connection_cut_under_a_statement_is_unavailable_and_then_mended(
    pg_store: PostgresStore, schema: str, ask: Ask
) -> None:
    """The insert waits for a lock when its connection goes; trying again with the same id is one job."""
    job = a_job()
    async with locked(pg_store, schema):
        inserting = asyncio.create_task(pg_store.insert([job]))
        await until_waiting(ask)
        ask(CUT_WAITING)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(inserting, 10)
    [receipt] = await pg_store.insert([job])
    assert receipt.intake is Intake.NEW


async def test_a_cancelled_call_frees_its_connection_for_the_next(
    pg_store: PostgresStore, schema: str, ask: Ask
) -> None:
    async with locked(pg_store, schema):
        for _ in range(3):
            inserting = asyncio.create_task(pg_store.insert([a_job()]))
            await until_waiting(ask)
            inserting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await inserting
            ask(CUT_WAITING)
    await asyncio.wait_for(pg_store.insert([a_job()]), 10)


async def test_wakeups_are_mended_after_a_cut(pg_store: PostgresStore, ask: Ask) -> None:
    async with pg_store.wakeups() as items:
        await asyncio.wait_for(anext(items), 10)  # the first look, once it listens
        ask(CUT)
        await asyncio.wait_for(anext(items), 10)  # a look for what was missed meanwhile
        ask(f"""SELECT pg_notify('{pg_store.naming.channel}', 'default')""")
        await asyncio.wait_for(anext(items), 10)


async def test_a_server_that_does_not_listen_is_unavailable() -> None:
    store = PostgresStore(f"postgresql://perdure:{SECRET}@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable, match="cannot be reached") as failure:
        await store.open()
    assert SECRET not in str(failure.value)
    await store.close()


async def test_an_unknown_database_or_user_is_refused(postgres_url: str) -> None:
    for option in ("dbname", "user"):
        store = PostgresStore(with_option(postgres_url, option, "no_such_name"))
        with pytest.raises(StoreRefused, match="no_such_name"):
            await store.open()
        await store.close()


@pytest.mark.parametrize(
    "url",
    [f"postgresql://u:{SECRET}@h/db?colour=red", f"postgresql://u:{SECRET}%zz@h/"],
)
def test_a_bad_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="url") as failure:
        PostgresStore(url)
    assert SECRET not in str(failure.value)


async def test_a_read_only_server_refuses(postgres_url: str, pg_store: PostgresStore, schema: str) -> None:
    url = with_option(postgres_url, "options", "-c default_transaction_read_only=on")
    store = PostgresStore(url, schema=schema)
    await store.open()
    try:
        assert await store.jobs(JobFilter(), Page()) == []
        with pytest.raises(StoreRefused, match="read-only"):
            await store.insert([a_job()])
    finally:
        await store.close()


async def test_a_store_not_open_says_so(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with pytest.raises(StoreRefused, match="open"):
        await store.insert([a_job()])


async def test_a_store_carried_over_a_fork_refuses_to_work(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pg_store.insert([a_job()])
    here = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(ForkError):
            await pg_store.insert([a_job()])
    await pg_store.insert([a_job()])


async def test_commits_are_durable_for_every_setting_of_the_role(postgres_url: str, schema: str) -> None:
    for given, kept in (("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")):
        store = PostgresStore(with_option(postgres_url, "options", f"-c synchronous_commit={given}"), schema=schema)
        await store.open()
        try:
            for pool in store._pools[:-1]:
                assert await pool.rows("SELECT current_setting('synchronous_commit')") == [(kept,)]
        finally:
            await store.close()


async def test_isolation_and_time_zone_of_the_role_change_nothing(postgres_url: str, schema: str) -> None:
    options = "-c default_transaction_isolation=serializable -c TimeZone=Asia/Tokyo -c DateStyle=German"
    store = PostgresStore(with_option(postgres_url, "options", options), schema=schema)
    await store.open()
    try:
        await store.migrate()
        await enqueue(store)
        claim = await claim_one(store, await employ(store))
        assert claim.claimed_at.utcoffset() is not None
        assert abs((await store.now() - claim.claimed_at).total_seconds()) < 60
        assert await store._desk.rows("SELECT current_setting('transaction_isolation')") == [("read committed",)]
    finally:
        await store.close()


async def test_prepared_statements_can_be_switched_off(postgres_url: str, schema: str) -> None:
    """Behind a pooler that lends connections for one transaction."""
    store = PostgresStore(with_option(postgres_url, "prepare", "off"), schema=schema)
    await store.open()
    try:
        await store.migrate()
        await enqueue(store)
        claim = await claim_one(store, await employ(store))
        await store.acknowledge([transition.succeeded(claim, None, ())])
        for pool in store._pools:
            assert await pool.rows("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
    finally:
        await store.close()


async def test_a_statement_rolled_back_by_a_deadlock_is_run_again(pg_store: PostgresStore) -> None:
    tries = []

    async def work(wire: object) -> str:
        tries.append(wire)
        if len(tries) < 3:
            raise psycopg.errors.DeadlockDetected
        return "done"

    assert await pg_store._desk.run(work) == "done"
    assert len(tries) == 3


async def test_closing_lets_go_of_every_connection(pg_store: PostgresStore, ask: Ask) -> None:
    await asyncio.gather(*(pg_store.insert([a_job()]) for _ in range(5)), pg_store.counts(), pg_store.workers())
    pg_store.ring(["default"])
    await pg_store.close()

    async def look() -> bool:
        return ask(OURS) == []

    await eventually(look)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.DiskFull("no space left on device"), StoreRefused),
        (psycopg.errors.ReadOnlySqlTransaction("read-only"), StoreRefused),
        (psycopg.errors.InsufficientPrivilege("permission denied"), StoreRefused),
        (psycopg.errors.TooManyConnections("too many clients"), StoreUnavailable),
        (psycopg.errors.AdminShutdown("terminating"), StoreUnavailable),
        (psycopg.errors.CannotConnectNow("starting up"), StoreUnavailable),
        (psycopg.errors.QueryCanceled("statement timeout"), StoreUnavailable),
        (psycopg.errors.DeadlockDetected("deadlock"), StoreUnavailable),
        (psycopg.errors.InvalidTextRepresentation("not a uuid"), ArgumentError),
        (psycopg.errors.InternalError_("broken page"), StoreError),
        (psycopg.OperationalError("connection refused"), StoreUnavailable),
        (psycopg.OperationalError("password authentication failed for user x"), StoreRefused),
        (OSError("no route to host"), StoreUnavailable),
    ],
)
def test_errors_say_whether_trying_again_may_help(error: Exception, kind: type[Exception]) -> None:
    assert type(translate(error)) is kind


def test_a_password_never_shows_in_an_error() -> None:
    server = Server(f"postgresql://u:{SECRET}@h/db")
    said = str(translate(psycopg.OperationalError(f"cannot connect with {SECRET}"), server.secret))
    assert SECRET not in said
    assert "***" in said


@asynccontextmanager
async def locked(store: PostgresStore, schema: str) -> AsyncIterator[None]:
    """Hold a lock on `job` that every insert waits for."""
    connection = await store._pools[0]._server.connect()
    try:
        async with connection.transaction():
            await connection.execute(f'LOCK TABLE "{schema}".job IN EXCLUSIVE MODE')
            await connection.execute("SET LOCAL application_name = 'locker'")
            yield
    finally:
        await connection.close()


async def until_waiting(ask: Ask) -> None:
    async def look() -> object:
        return ask(WAITING)

    await eventually(look)


def test_a_url_may_name_its_host_and_user_in_the_query() -> None:
    params = Server("postgresql:///jobs?host=/run/postgresql&user=ops").params
    assert (params["dbname"], params["host"], params["user"]) == ("jobs", "/run/postgresql", "ops")


async def test_a_lost_session_leaves_the_one_with_its_socket_number_alone(postgres_url: str) -> None:
    """The library closes a lost socket, and the system gives its number to the next session that is opened."""
    server = Server(postgres_url)
    lost = Wire(await server.connect(), prepare=True)
    [[pid]] = await lost.fetch("SELECT pg_backend_pid()")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        async with asyncio.timeout(30):
            while not lost._lost:
                await asyncio.sleep(0.01)
        living = Wire(await server.connect(), prepare=True)
        assert living._socket == lost._socket
        asking = asyncio.ensure_future(living.fetch("SELECT 42"))
        await asyncio.sleep(0)
        select.select([living._socket], [], [], 30)  # the answer is there, but not read yet
        assert not lost.is_sound()
        lost.drop()
        assert await asyncio.wait_for(asking, 30) == [(42,)]
        living.drop()
