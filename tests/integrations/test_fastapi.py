"""A FastAPI site enqueues, looks at jobs and waits for them, and a row commits together with its job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
from httpx import ASGITransport, AsyncClient
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from tests.support.callers import sqlalchemy_url
from tests.support.databases.behind import with_option
from tests.support.databases.databases import SCHEMA
from tests.support.web.fastapi_site import Site

from perdure import App, WorkerSettings

_ADA: Final = "ada@example.org"
_NOBODY: Final = "01890000-0000-7000-8000-000000000000"


@pytest.fixture(params=["sqlite", "postgres"])
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """One database as perdure and as SQLAlchemy name it."""
    if request.param == "sqlite":
        file = tmp_path / "site.db"
        request.getfixturevalue("sqlite_files").put(file)
        yield f"sqlite:///{file}?driver=sqlite3", sqlalchemy_url(str(file), "sqlite+aiosqlite")
        return
    with request.getfixturevalue("postgres_database").lent() as url:
        yield with_option(url, "schema", SCHEMA), sqlalchemy_url(url, "postgresql+asyncpg")


@pytest.fixture
async def site(addresses: tuple[str, str]) -> AsyncIterator[Site]:
    """A site with a table of its own. On PostgreSQL its constraint is checked by the commit."""
    app = App(addresses[0], worker=WorkerSettings(poll="50ms", stop_timeout=0))
    engine = create_async_engine(addresses[1])
    checked = " DEFERRABLE INITIALLY DEFERRED" if addresses[1].startswith("postgresql") else ""
    async with engine.begin() as connection:
        await connection.execute(text(f"CREATE TABLE customer (email text, UNIQUE (email){checked})"))
    yield Site(app, engine)
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE customer"))
    await engine.dispose()


@pytest.fixture
async def client(site: Site) -> AsyncIterator[AsyncClient]:
    """A browser, while the site is open."""
    transport = ASGITransport(site.server, raise_app_exceptions=False)
    async with (
        site.server.router.lifespan_context(site.server),  # ASGITransport does not send lifespan events
        AsyncClient(transport=transport, base_url="http://site") as client,
    ):
        yield client


async def stored(site: Site) -> tuple[list[str], list[str]]:
    """The customers that are stored, and those that a job is stored for."""
    async with site.engine.connect() as connection:
        rows = (await connection.execute(text("SELECT email FROM customer ORDER BY email"))).scalars().all()
    desk = await site.app.desk("tests")
    return list(rows), sorted(job.arguments["email"] for job in (await desk.jobs()).jobs)


@pytest.mark.parametrize("path", ["/welcome", "/welcome-in-a-thread"])
async def test_a_route_enqueues_and_others_show_the_job_and_its_result(
    site: Site, client: AsyncClient, path: str
) -> None:
    enqueued = await client.post(path, params={"email": _ADA})
    job = enqueued.json()["id"]
    seen = (await client.get(f"/welcome/{job}")).json()
    assert (enqueued.status_code, seen["id"], seen["state"], seen["args"]) == (202, job, "ready", {"email": _ADA})

    worker = await site.app.worker()
    working = asyncio.create_task(worker.run())
    answer = await client.get(f"/welcome/{job}/result")
    worker.stop()
    await asyncio.wait_for(working, 30)

    assert (answer.status_code, answer.json()) == (200, f"welcome, {_ADA}")
    done = (await client.get(f"/welcome/{job}")).json()
    assert (done["state"], done["result"]) == ("succeeded", f"welcome, {_ADA}")
    assert done == (await site.welcome.handle(job).view()).to_dict()


async def test_mistakes_have_answers_of_their_own(client: AsyncClient) -> None:
    for path in (f"/welcome/{_NOBODY}", f"/welcome/{_NOBODY}/result"):
        missing = await client.get(path)
        assert missing.status_code == 404
        assert _NOBODY in missing.json()["detail"]
    wrong = await client.post("/welcome-wrongly")
    assert (wrong.status_code, "email" in wrong.json()["detail"]) == (422, True)


async def check_a_transaction(site: Site, client: AsyncClient, path: str) -> None:
    """The route commits row and job together, and a commit that fails is not answered as a success."""
    paid = await client.post(path, params={"email": _ADA})
    refused = await client.post(path, params={"email": "nonsense"})
    twice = await client.post(path, params={"email": _ADA})
    assert [answer.status_code for answer in (paid, refused, twice)] == [201, 422, 500]
    assert await stored(site) == ([_ADA], [_ADA])
    assert (await client.get(f"/welcome/{paid.json()['id']}")).json()["state"] == "ready"


@pytest.mark.parametrize("path", ["/customers", "/customers-by-dependency"])
async def test_a_row_and_its_job_are_stored_together_or_not_at_all(site: Site, client: AsyncClient, path: str) -> None:
    await check_a_transaction(site, client, path)


@pytest.mark.parametrize("addresses", ["postgres"], indirect=True)
async def test_the_same_through_psycopg(site: Site, client: AsyncClient) -> None:
    await check_a_transaction(site, client, "/customers-by-psycopg")
