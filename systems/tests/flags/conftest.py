"""The system in a sandbox whose clock the test moves, a database that can be made to fail, and a cache stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.support.databases.behind import query

from perdure import Event, JobStarted
from perdure.desk import asgi
from perdure.testing import Sandbox
from perdure_systems.flags.jobs import APPLY, INVALIDATE, WORKER, app, database
from perdure_systems.flags.standins import CacheStandIn
from perdure_systems.flags.store import add_flag
from perdure_systems.flags.system import SYSTEM
from perdure_systems.kit.web import api

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ADMIN = "ada-admin-token"
READER = "shop-reader-token"
AUTHORIZED = {"Authorization": f"Bearer {ADMIN}"}


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two callers, and nothing else set, whatever the machine's environment says."""
    for variable in ("FLAG_SCHEDULE_MAX_RETRIES", "FLAG_CACHE_URL", "FLAG_ALERT_ADDRESS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FLAG_ADMIN_TOKENS", f"ada:{ADMIN},bob:bob-admin-token")
    monkeypatch.setenv("FLAG_READER_TOKENS", f"shop:{READER}")
    return monkeypatch


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[EventDict]]:
    """What was logged, and no tracebacks drawn: that takes longer than the tests."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
async def box(engine_url: str) -> AsyncIterator[Sandbox]:
    """The system's jobs and tables on both engines, at noon; `@app.every` functions are called by the tests."""
    async with Sandbox(app, url=engine_url, start=NOON, periodic=False, settings=WORKER) as sandbox:
        await database.migrate()
        try:
            yield sandbox
        finally:
            await database.close()


@pytest.fixture
async def client(box: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    """Requests to the API by the admin ada."""
    transport = httpx.ASGITransport(app=api(SYSTEM.routes), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://flags", headers=AUTHORIZED) as http:
        yield http


@pytest.fixture
async def operator(box: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    """Requests to the desk beside the API, from this machine."""
    async with asgi(app) as desk:
        transport = httpx.ASGITransport(app=api(SYSTEM.routes, desk=desk))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield http


class Run(NamedTuple):
    """A run of a schedule, or of an invalidation: when, and of which."""

    at: datetime
    kind: str
    schedule_id: str


@pytest.fixture
def runs(box: Sandbox) -> Iterator[list[Run]]:
    """What the workers have run, in order."""
    heard: list[Run] = []

    def hear(event: Event) -> None:
        if isinstance(event, JobStarted) and event.kind in {APPLY, INVALIDATE}:
            heard.append(Run(box.now, event.kind, event.meta.get("scheduleId", "")))

    stop = app.subscribe(hear, JobStarted)
    yield heard
    stop()


@pytest.fixture
async def cache(settings: pytest.MonkeyPatch) -> AsyncIterator[CacheStandIn]:
    """A cache over a real socket."""
    async with CacheStandIn() as standin:
        settings.setenv("FLAG_CACHE_URL", standin.url)
        yield standin


class Faults:
    """Ways in which the database fails, until they are mended."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_sqlite = url.startswith("sqlite:")

    async def break_flag(self, key: str, *, state: str = "58030") -> None:
        """Every change of this flag fails."""
        await self._break("flag_flag", "BEFORE UPDATE", f"NEW.key = '{key}'", state)

    async def break_flags(self) -> None:
        """Every change of any flag fails."""
        await self._break("flag_flag", "BEFORE UPDATE", "true", "58030")

    async def mend(self) -> None:
        """The database works again."""
        on = "" if self._is_sqlite else " ON flag_flag"
        await database.execute(f"DROP TRIGGER fault{on}")

    async def _break(self, table: str, when: str, condition: str, state: str) -> None:
        if self._is_sqlite:
            body = "BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END"
            await database.execute(f"CREATE TRIGGER fault {when} ON {table} WHEN {condition} {body}")
            return
        await database.execute(
            "CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'the disk is broken' USING ERRCODE = '{state}'; END $$"
        )
        when_row = f"FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION fault()"
        await database.execute(f"CREATE TRIGGER fault {when} ON {table} {when_row}")


@pytest.fixture
async def faults(box: Sandbox, engine_url: str) -> AsyncIterator[Faults]:
    """Ways to make the database fail."""
    yield Faults(engine_url)
    query(engine_url, "DROP TABLE IF EXISTS flag_flag")  # with its trigger
    if not engine_url.startswith("sqlite:"):
        query(engine_url, "DROP FUNCTION IF EXISTS fault")


async def make_flag(key: str, *, enabled: bool = False, rollout: int = 100) -> None:
    """A flag."""
    async with database.transaction() as session:
        await add_flag(session, key, enabled=enabled, rollout=rollout, description="", at=NOON, by="test")


async def make_schedule(client: httpx.AsyncClient, key: str, at: datetime, **more: Any) -> str:
    """A flag, if there is none, and a schedule that turns it on; the schedule's id."""
    await make_flag(key)
    body = {"updates": {"enabled": True}, "scheduledAt": at.isoformat(), **more}
    answer = await client.post(f"/api/admin/flags/{key}/schedule", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shown(client: httpx.AsyncClient, key: str, schedule_id: str) -> dict[str, Any]:
    """A schedule as the API shows it."""
    answer = await client.get(f"/api/admin/flags/{key}/schedule/{schedule_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def instant(text: str | None) -> datetime:
    """A time of the API."""
    assert text is not None
    return datetime.fromisoformat(text)
