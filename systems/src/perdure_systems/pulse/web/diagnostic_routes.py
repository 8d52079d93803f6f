"""Live diagnostics over HTTP, for admins: always on, behind the token PULSE_ADMIN_TOKEN.

Below `/api/pulse/diagnostics`: `/stacks` (threads and tasks, and what each waits for), `/heap`, `/profile`, `/locks`
and `/watchdog`; beside them `POST /api/pulse/backup`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from perdure.diagnostics import describe, text
from perdure_systems.kit.guards import bearer_of
from perdure_systems.kit.web import JsonResponse, Problem
from perdure_systems.pulse.database_locks import database_locks
from perdure_systems.pulse.diagnostics import LONGEST, contention, heap, profile
from perdure_systems.pulse.jobs import app, database
from perdure_systems.pulse.log_lines import reports
from perdure_systems.pulse.settings import read_settings

Endpoint = Callable[[Request], Awaitable[Response]]
_STAMP: Final = "perdure-%Y%m%d-%H%M%S.db"


def for_admins(endpoint: Endpoint) -> Endpoint:
    """Answer only those who show the admin's token: 401 without one, 403 with another one."""

    async def guarded(request: Request) -> Response:
        token = read_settings().admin_token
        if not token:
            raise Problem(HTTPStatus.FORBIDDEN, "diagnostics are for admins: set PULSE_ADMIN_TOKEN to use them")
        if "authorization" not in request.headers:
            raise Problem(HTTPStatus.UNAUTHORIZED, "a bearer token is needed: the value of PULSE_ADMIN_TOKEN")
        if bearer_of(request, {token: "admin"}) is None:
            raise Problem(HTTPStatus.FORBIDDEN, "this token is not the admin's")
        return await endpoint(request)

    return guarded


async def stacks(request: Request) -> Response:
    """Every thread and task with its stack and what it waits for; `?format=text` in words."""
    snapshot = describe(request.app.state.workers)
    if request.query_params.get("format") == "text":
        return PlainTextResponse(text(snapshot))
    return JsonResponse(snapshot)


async def show_heap(request: Request) -> Response:
    """What the memory is made of; `?seconds=n` also tells where it grows meanwhile."""
    return JsonResponse(await heap(_seconds(request, 0.0)))


async def show_profile(request: Request) -> Response:
    """Which functions use the processor, over `?seconds=n`."""
    return JsonResponse(await profile(_seconds(request, 5.0)))


async def show_locks(request: Request) -> Response:
    """Who waits for locks, of Python and of the database, over `?seconds=n`."""
    waits = await contention(_seconds(request, 1.0))
    return JsonResponse({"process": waits, "database": await database_locks(database, app.url)})


async def show_watchdog(_: Request) -> Response:
    """What the watchdog has reported: a blocked event loop, a slow database, a stuck heartbeat."""
    return JsonResponse(list(reports))


async def back_up(_: Request) -> Response:
    """Copy the SQLite database while work goes on. PostgreSQL is backed up by its own tools: 409 names them."""
    folder = read_settings().backup_folder
    if not app.url.startswith("sqlite:"):
        raise Problem(
            HTTPStatus.CONFLICT,
            "PostgreSQL has its own tools: pg_dump for a copy of one instant, pg_basebackup with a WAL archive for any",
        )
    if not folder:
        raise Problem(HTTPStatus.CONFLICT, "no folder for copies is set: set PULSE_BACKUP_FOLDER")
    await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
    store = await app.store()
    return JsonResponse(
        await store.back_up(str(Path(folder) / (await store.now()).strftime(_STAMP))), HTTPStatus.CREATED
    )


def _seconds(request: Request, default: float) -> float:
    value = request.query_params.get("seconds", "")
    try:
        seconds = float(value) if value else default
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        detail = f"seconds must be a number from 0 to {LONGEST:g}, got {value[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="seconds")
    return seconds


DIAGNOSTICS: Final = [
    Route("/api/pulse/diagnostics/stacks", for_admins(stacks)),
    Route("/api/pulse/diagnostics/heap", for_admins(show_heap)),
    Route("/api/pulse/diagnostics/profile", for_admins(show_profile)),
    Route("/api/pulse/diagnostics/locks", for_admins(show_locks)),
    Route("/api/pulse/diagnostics/watchdog", for_admins(show_watchdog)),
    Route("/api/pulse/backup", for_admins(back_up), methods=["POST"]),
]
