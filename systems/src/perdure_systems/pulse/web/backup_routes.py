"""`POST /api/pulse/backup`, for admins: behind the token PULSE_ADMIN_TOKEN."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.kit.guards import bearer_of
from perdure_systems.kit.web import JsonResponse, Problem
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.settings import read_settings

_STAMP: Final = "perdure-%Y%m%d-%H%M%S.db"


async def back_up(request: Request) -> Response:
    """Copy the SQLite database while work goes on. PostgreSQL is backed up by its own tools: 409 names them."""
    _refuse_others(request)
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


def _refuse_others(request: Request) -> None:
    """Only the admin's token passes: 401 without one, 403 with another one."""
    token = read_settings().admin_token
    if not token:
        raise Problem(HTTPStatus.FORBIDDEN, "backups are for admins: set PULSE_ADMIN_TOKEN to use them")
    if "authorization" not in request.headers:
        raise Problem(HTTPStatus.UNAUTHORIZED, "a bearer token is needed: the value of PULSE_ADMIN_TOKEN")
    if bearer_of(request, {token: "admin"}) is None:
        raise Problem(HTTPStatus.FORBIDDEN, "this token is not the admin's")


BACKUPS: Final = [Route("/api/pulse/backup", back_up, methods=["POST"])]
