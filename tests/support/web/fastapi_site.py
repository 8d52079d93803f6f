"""A FastAPI site with routes that enqueue, show a job, wait for it, and enqueue in the transaction of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import UUID

import psycopg
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from perdure import App, NotFoundError, PayloadError

router = APIRouter()


class Site:
    """An app with one job, the web server in front of it, and the database that both use."""

    def __init__(self, app: App, engine: AsyncEngine) -> None:
        self.app = app
        self.engine = engine
        self.server = FastAPI(lifespan=_lifespan)
        self.server.state.site = self
        self.server.include_router(router)
        self.server.add_exception_handler(NotFoundError, _not_found)
        self.server.add_exception_handler(PayloadError, _wrong_arguments)

        @app.job
        async def welcome(email: str) -> str:
            return f"welcome, {email}"

        self.welcome = welcome


@asynccontextmanager
async def _lifespan(server: FastAPI) -> AsyncIterator[None]:
    app: App = server.state.site.app
    async with app:
        yield
    app.close_sync()  # what routes in threads have opened


async def _not_found(_request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=404)


async def _wrong_arguments(_request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=422)


async def site_of(request: Request) -> Site:
    """The site that a request came to."""
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(site_of)]


async def session_of(here: Here) -> AsyncIterator[AsyncSession]:
    """The transaction of a request."""
    async with AsyncSession(here.engine) as session, session.begin():
        yield session


@router.post("/welcome", status_code=202)
async def enqueue(email: str, here: Here) -> dict[str, str]:
    """A plain enqueue."""
    return {"id": (await here.welcome.enqueue(email)).id}


@router.post("/welcome-in-a-thread", status_code=202)
def enqueue_in_a_thread(email: str, here: Here) -> dict[str, str]:
    """The same from a plain function, which FastAPI runs in a thread."""
    return {"id": here.welcome.enqueue_sync(email).id}


@router.post("/welcome-wrongly")
async def enqueue_wrongly(here: Here) -> dict[str, str]:
    """A call that the handler does not take."""
    return {"id": (await here.welcome.enqueue(7)).id}  # type: ignore[arg-type]


@router.get("/welcome/{job_id}")
async def status(job_id: UUID, here: Here) -> dict[str, Any]:
    """How a job stands."""
    return (await here.welcome.handle(job_id).view()).to_dict()


@router.get("/welcome/{job_id}/result")
async def result(job_id: UUID, here: Here) -> str:
    """What a job gives, as soon as it is done."""
    return await here.welcome.handle(job_id).result(timeout="20s")


@router.post("/customers", status_code=201)
async def in_a_block(email: str, here: Here) -> dict[str, str]:
    """A transaction of SQLAlchemy inside the route."""
    async with AsyncSession(here.engine) as session, session.begin():
        return await _add(here, session, email)


@router.post("/customers-by-dependency", status_code=201)
async def by_dependency(
    email: str, here: Here, session: Annotated[AsyncSession, Depends(session_of, scope="function")]
) -> dict[str, str]:
    """A transaction of SQLAlchemy around the route, which commits before the answer."""
    return await _add(here, session, email)


@router.post("/customers-by-psycopg", status_code=201)
async def by_psycopg(email: str, here: Here) -> dict[str, str]:
    """A transaction of psycopg."""
    address = here.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(address) as connection, connection.transaction():
        await connection.execute("INSERT INTO customer VALUES (%s)", [email])
        handle = await here.welcome.using(connection=connection).enqueue(email)
        _check(email)
    return {"id": handle.id}


async def _add(site: Site, session: AsyncSession, email: str) -> dict[str, str]:
    await session.execute(text("INSERT INTO customer VALUES (:email)"), {"email": email})
    handle = await site.welcome.using(connection=session).enqueue(email)
    _check(email)
    return {"id": handle.id}


def _check(email: str) -> None:
    """Refuse the request when row and job are written already, so that both have to go."""
    if "@" not in email:
        raise HTTPException(422, "not an address")
