"""How a pooler is recognised, and what is said of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any, cast

import psycopg
import pytest
from tests.pooler.conftest import StartPooler
from tests.support.builders.jobs import a_job
from tests.support.databases.behind import with_option
from tests.support.databases.pgbouncer import PgBouncer

from perdure import App
from perdure.app.connect import store_for
from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.sessions import Connection, Sessions, _meet, are_shared
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import SettingsError, StoreRefused
from perdure.storage.operate.diagnosis import Finding, Severity


async def finding_of(url: str, listen_url: str | None = None) -> Finding:
    """What the doctor says of the pooler."""
    store = store_for(url, listen_url=listen_url)
    await store.open()
    try:
        [finding] = [finding for finding in await store.diagnose() if finding.check == "pooler"]
    finally:
        await store.close()
    return finding


async def sessions_of(url: str) -> Sessions:
    server = Server(url)
    await (await server.connect()).close()
    return server.sessions


async def test_a_direct_connection_is_recognised(postgres_url: str) -> None:
    assert await sessions_of(postgres_url) is Sessions.DIRECT


@pytest.mark.parametrize(
    ("mode", "size", "sessions"),
    [("transaction", 1, Sessions.SHARED), ("transaction", 20, Sessions.SHARED), ("session", 20, Sessions.POOLED)],
)
async def test_the_mode_of_a_pooler_is_recognised(
    postgres_url: str, start_pooler: StartPooler, mode: str, size: int, sessions: Sessions
) -> None:
    assert await sessions_of(start_pooler(mode=mode, size=size).url(postgres_url)) is sessions


async def test_a_pooler_is_recognised_while_others_use_it(postgres_url: str, start_pooler: StartPooler) -> None:
    url = start_pooler(size=3).url(postgres_url)
    with busy(url, clients=5):
        for _ in range(20):
            assert await sessions_of(url) is Sessions.SHARED


async def test_the_url_overrides_what_would_be_recognised(postgres_url: str, start_pooler: StartPooler) -> None:
    pooled = start_pooler(mode="session").url(postgres_url)
    assert await sessions_of(with_option(pooled, "pooler", "transaction")) is Sessions.SHARED
    assert await sessions_of(with_option(postgres_url, "pooler", "transaction")) is Sessions.SHARED
    assert await sessions_of(with_option(pooled, "pooler", "session")) is Sessions.POOLED


async def test_a_session_pooler_without_a_second_session_counts_as_shared(
    postgres_url: str, start_pooler: StartPooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known, and nothing is harmed."""
    monkeypatch.setattr("perdure.engines.postgres.database.sessions.ANSWER_TIMEOUT_SECONDS", 0.3)
    assert await sessions_of(start_pooler(mode="session", size=1).url(postgres_url)) is Sessions.SHARED


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
async def test_sessions_that_are_lent_in_turn_are_shared(size: int) -> None:
    """As by a pooler with `server_round_robin`, which takes the one that rested for longest."""
    lent = cycle(range(size))
    clients = [cast("Connection", FakeClient(lambda: next(lent))) for _ in range(2)]
    assert await _meet(*clients)


async def test_sessions_that_stay_with_their_connection_are_not_shared() -> None:
    first, second = (cast("Connection", FakeClient(lambda pid=pid: pid)) for pid in (4711, 4712))

    async def connect() -> Connection:
        return second

    assert not await are_shared(first, connect)


async def test_a_session_pooler_costs_nothing(direct_url: str, start_pooler: StartPooler) -> None:
    """Statements are prepared and notifications heard as on a direct connection."""
    store = cast("PostgresStore", store_for(start_pooler(mode="session", size=30).url(direct_url)))
    await store.open()
    try:
        await store.insert([a_job()])
        [[prepared]] = await store._pools[0].rows("SELECT count(*) FROM pg_prepared_statements")
        assert prepared > 0
        assert await store._signals.receives_notifications()
    finally:
        await store.close()


async def test_a_pooler_that_allows_no_transactions_is_refused(postgres_url: str, start_pooler: StartPooler) -> None:
    store = store_for(start_pooler(mode="statement").url(postgres_url))
    try:
        with pytest.raises(StoreRefused, match="use pool_mode transaction or session"):
            await store.open()
    finally:
        await store.close()


async def test_an_option_that_a_pooler_does_not_pass_on_is_refused(engine_url: str) -> None:
    store = store_for(with_option(engine_url, "options", "-c jit=off"))
    try:
        with pytest.raises(StoreRefused, match="unsupported startup parameter"):
            await store.open()
    finally:
        await store.close()


async def test_the_doctor_names_the_pooler_and_what_to_do(
    engine_url: str, direct_url: str, pooler: PgBouncer, postgres_url: str
) -> None:
    assert (await finding_of(direct_url)).seen == "none, connected to the server directly"
    alone = await finding_of(engine_url)
    assert alone.severity is Severity.WARNING
    assert "transaction mode" in alone.seen
    assert "by polling" in alone.seen
    assert "PERDURE_LISTEN_URL" in alone.advice
    heard = await finding_of(engine_url, direct_url)
    assert heard.severity is Severity.OK
    assert "notifications arrive" in heard.seen
    again = await finding_of(engine_url, engine_url)
    assert again.severity is Severity.WARNING
    assert "through a transaction pooler too" in again.seen
    nowhere = await finding_of(engine_url, with_option(direct_url, "user", "no_such_user"))
    assert nowhere.severity is Severity.WARNING
    assert "no_such_user" in nowhere.seen


async def test_the_doctor_notices_a_listen_url_of_another_database(
    engine_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.engines.postgres.fleet.signals._ECHO_TIMEOUT_SECONDS", 0.3)
    assert "hears no notification" in (await finding_of(engine_url, postgres_url)).seen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "postgresql://host/db?pooler=on"}, "^url has pooler='on': write auto, session, transaction$"),
        ({"url": "postgresql://host/db", "listen_url": "host:5432"}, "^listen_url names no PostgreSQL database: write"),
        ({"url": "postgresql://host/db", "listen_url": "postgresql://host:x/db"}, "^listen_url names no server"),
        ({"url": "postgresql://host/db", "listen_url": 5}, "^listen_url must be text, got int$"),
        ({"url": "sqlite:///x.db", "listen_url": "postgresql://host/db"}, "^listen_url is for PostgreSQL"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        App(**options)


def test_a_listen_url_of_the_environment_is_used_and_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_LISTEN_URL", "nowhere")
    with pytest.raises(SettingsError, match=r"^PERDURE_LISTEN_URL names no PostgreSQL database"):
        App("postgresql://host/db")
    assert App("sqlite:///x.db").url == "sqlite:///x.db"
    monkeypatch.setenv("PERDURE_LISTEN_URL", "postgresql://direct/db?schema=jobs")
    store = cast("PostgresStore", App("postgresql://host/db").new_store())
    assert store._signals._listening.params["host"] == "direct"
    assert store.sibling()._signals._listening.params["host"] == "direct"


class FakeClient:
    """A connection of which only the session can be asked."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def execute(self, _sql: str) -> FakeClient:
        await asyncio.sleep(0)
        return self

    async def fetchall(self) -> list[tuple[int]]:
        return [(self._session(),)]

    async def close(self) -> None:
        pass


@contextmanager
def busy(url: str, clients: int) -> Iterator[None]:
    """Clients of the pool that run one small transaction after the other."""
    over = threading.Event()

    def work() -> None:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
            while not over.is_set():
                connection.execute("SELECT pg_sleep(0.001)")

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
