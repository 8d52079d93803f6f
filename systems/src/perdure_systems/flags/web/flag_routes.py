"""The HTTP API of flags: administer them, and ask whether one is on for a user."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure_systems.flags.cache import FlagCache
from perdure_systems.flags.jobs import ACTOR, app, database, invalidate
from perdure_systems.flags.records import KEY, Flag, Rollout, Updates, bucket_of
from perdure_systems.flags.schedules import tag_of
from perdure_systems.flags.settings import read_settings
from perdure_systems.flags.store import add_flag, change_flag, delete_flag, find_flag, list_changes, list_flags
from perdure_systems.flags.web.access import admin_name, by_admin, by_anybody_known
from perdure_systems.kit.database import Session
from perdure_systems.kit.web import JsonResponse, Problem, read_body

_FLAGS: Final = "/api/admin/flags"
_ONE: Final = f"{_FLAGS}/{{flagKey}}"
_USER_ID_LIMIT_CHARACTERS: Final = 500


class NewFlag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request for a flag."""

    key: Annotated[str, msgspec.Meta(pattern=rf"^{KEY.pattern}\Z")]
    enabled: bool = False
    rollout: Rollout = 100
    description: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Evaluation(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a flag is on for a user, and why."""

    flag_key: str
    enabled: bool
    bucket: int
    rollout: int
    version: int


@by_admin
async def list_all(_: Request) -> Response:
    """`GET /api/admin/flags`."""
    return JsonResponse({"flags": await list_flags(database)})


@by_admin
async def create(request: Request) -> Response:
    """`POST /api/admin/flags`: 201; 409 if there is one of that key."""
    made = await make_flag(await read_body(request, NewFlag), admin_name(request))
    return JsonResponse(made, HTTPStatus.CREATED, {"Location": f"{_FLAGS}/{made.key}"})


@by_admin
async def show(request: Request) -> Response:
    """`GET /api/admin/flags/{flagKey}`: the flag and its latest changes."""
    key = request.path_params["flagKey"]
    flag = await find_flag(database, key)
    if flag is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {key!r}", field="flagKey")
    return JsonResponse({"flag": flag, "changes": await list_changes(database, flag.key)})


@by_admin
async def change(request: Request) -> Response:
    """`PATCH /api/admin/flags/{flagKey}`: change it now."""
    updates = await read_body(request, Updates)
    return JsonResponse(await change_now(request.path_params["flagKey"], updates, admin_name(request)))


@by_admin
async def delete(request: Request) -> Response:
    """`DELETE /api/admin/flags/{flagKey}`: its pending schedules fail for good when they are due."""
    key, at = request.path_params["flagKey"], await (await app.desk(ACTOR)).now()
    async with database.transaction() as session:
        gone = await delete_flag(session, key, at=at, by=admin_name(request))
        if gone is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {key!r}", field="flagKey")
        await _invalidate(session, gone)
    return JsonResponse(gone)


@by_anybody_known
async def evaluate(request: Request) -> Response:
    """`GET /api/flags/{flagKey}/evaluate?userId=ada`: whether the flag is on for a user."""
    user = request.query_params.get("userId", "")
    if not 1 <= len(user) <= _USER_ID_LIMIT_CHARACTERS:
        detail = f"userId must be 1 to {_USER_ID_LIMIT_CHARACTERS} characters, got {len(user)}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="userId")
    flag = await read_through(request.path_params["flagKey"])
    if flag is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {request.path_params['flagKey']!r}", field="flagKey")
    return JsonResponse(Evaluation(flag.key, flag.is_on_for(user), bucket_of(user), flag.rollout, flag.version))


async def read_through(key: str) -> Flag | None:
    """The flag from the cache, or from the database, which leaves a copy there."""
    url = read_settings().cache_url
    if url and (copy := await FlagCache(url).read(key)) is not None:
        return copy
    flag = await find_flag(database, key)
    if url and flag is not None:
        await FlagCache(url).keep(flag)
    return flag


async def make_flag(new: NewFlag, by: str) -> Flag:
    """A new flag; a 409 if there is one of that key."""
    at = await (await app.desk(ACTOR)).now()
    async with database.transaction() as session:
        fields = msgspec.structs.asdict(new)
        made = await add_flag(session, **fields, at=at, by=by)
        if made is None:
            raise Problem(HTTPStatus.CONFLICT, f"there is a flag {new.key!r} already", field="key")
        await _invalidate(session, made)
    return made


async def change_now(key: str, updates: Updates, by: str) -> Flag:
    """Change a flag at once; a 404 if there is none, a 400 if nothing is to be changed."""
    if updates.is_empty:
        raise Problem(HTTPStatus.BAD_REQUEST, "name at least one change: enabled, rollout", field="updates")
    at = await (await app.desk(ACTOR)).now()
    async with database.transaction() as session:
        if await find_flag(session, key) is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {key!r}", field="flagKey")
        changed = await change_flag(session, key, updates, at=at, by=by)
        await _invalidate(session, changed)
    return changed


async def _invalidate(session: Session, flag: Flag) -> None:
    """Enqueue the invalidation of the cache, in the transaction of the change."""
    if read_settings().cache_url:
        prepared = invalidate.using(connection=session.connection, tags=(tag_of(flag.key),))
        await prepared.enqueue(flag.key, flag.version)


FLAG_ROUTES: Final[list[BaseRoute]] = [
    Route(_FLAGS, list_all, methods=["GET"]),
    Route(_FLAGS, create, methods=["POST"]),
    Route(_ONE, show, methods=["GET"]),
    Route(_ONE, change, methods=["PATCH"]),
    Route(_ONE, delete, methods=["DELETE"]),
    Route("/api/flags/{flagKey}/evaluate", evaluate, methods=["GET"]),
]
