"""Receivers over real sockets, and the system in a sandbox whose clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import apsw
import httpx
import psycopg
import pytest
from structlog.testing import capture_logs

from perdure.testing import Sandbox
from perdure_systems.kit.web import api
from perdure_systems.notifications.channels.message import Channel
from perdure_systems.notifications.jobs import app
from perdure_systems.notifications.standins import StandIns
from perdure_systems.notifications.system import SYSTEM


@pytest.fixture(autouse=True)
def no_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """No channel is set up, whatever the machine's environment says."""
    for variable in StandIns().environment():
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the log's tracebacks from being drawn: that takes longer than the tests."""
    with capture_logs():
        yield


@pytest.fixture
async def receivers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIns]:
    """A receiver for each channel, and all channels set up to send there."""
    async with StandIns() as standins:
        for variable, value in standins.environment().items():
            monkeypatch.setenv(variable, value)
        yield standins


@pytest.fixture
async def box(engine_url: str) -> AsyncIterator[Sandbox]:
    """The system's jobs on both engines."""
    async with Sandbox(app, url=engine_url) as sandbox:
        yield sandbox


@pytest.fixture
async def client(box: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    """Requests to the system's API."""
    transport = httpx.ASGITransport(app=api(SYSTEM.routes), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://system") as http:
        yield http


@pytest.fixture
def refuse(receivers: StandIns) -> Callable[..., None]:
    """Let receivers refuse so many requests of each channel; -1 means all."""

    def apply(times: int, status: int = 503) -> None:
        for channel in Channel:
            receivers.knobs[channel].failing = times
            receivers.knobs[channel].status = status

    return apply


@pytest.fixture
def run_sql(engine_url: str) -> Callable[[str, str], None]:
    """Run a statement on the database behind the system's back: one for SQLite, one for PostgreSQL."""

    def run(on_sqlite: str, on_postgres: str) -> None:
        if engine_url.startswith("sqlite:"):
            connection = apsw.Connection(engine_url.removeprefix("sqlite:///"))
            connection.set_busy_timeout(10_000)
            connection.execute(on_sqlite)
            connection.close()
        else:
            with psycopg.connect(engine_url.partition("schema=")[0].rstrip("?&"), autocommit=True) as postgres:
                postgres.execute("SET search_path = perdure")
                postgres.execute(on_postgres.encode())

    return run


@pytest.fixture
def break_requeue(run_sql: Callable[[str, str], None]) -> Callable[[], None]:
    """Let the last statement of a requeue fail: its entry in the audit trail."""
    on_postgres = """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refusing BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION perdure.refuse();
    """
    on_sqlite = "CREATE TRIGGER refusing BEFORE INSERT ON perdure_audit BEGIN SELECT RAISE(ABORT, 'refused'); END;"
    return lambda: run_sql(on_sqlite, on_postgres)
