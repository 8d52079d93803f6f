"""What the forms of the pages send: an empty field means "as it is". It is read, and goes the way of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure_systems.flags.office import add_schedules
from perdure_systems.flags.records import Updates
from perdure_systems.flags.schedules import NewSchedule
from perdure_systems.flags.web.access import admin_name, by_admin
from perdure_systems.flags.web.flag_routes import NewFlag, change_now, make_flag
from perdure_systems.flags.web.routes import refuse_problems
from perdure_systems.kit.web import JsonResponse, Problem, read_body

T = TypeVar("T")
_SWITCH: Final = {"": None, "on": True, "off": False}


class FlagForm(msgspec.Struct, frozen=True):
    """A new flag."""

    key: str
    rollout: int = 100
    description: str = ""
    enabled: str = ""


class ScheduleForm(msgspec.Struct, frozen=True, rename="camel"):
    """A new schedule; times are in UTC."""

    scheduled_at: str
    enabled: str = ""
    rollout: int | str = ""
    max_retries: int | str = ""
    priority: str = "normal"


class ChangeForm(msgspec.Struct, frozen=True):
    """A change to be made now."""

    enabled: str = ""
    rollout: int | str = ""


@by_admin
async def add_flag(request: Request) -> Response:
    """`POST /forms/flags`."""
    form = await read_body(request, FlagForm)
    fields = {"key": form.key.strip(), "description": form.description, "enabled": form.enabled == "on"}
    new = _converted({**fields, "rollout": form.rollout}, NewFlag)
    return JsonResponse(await make_flag(new, admin_name(request)), HTTPStatus.CREATED)


@by_admin
async def add_schedule(request: Request) -> Response:
    """`POST /forms/flags/{flagKey}/schedules`."""
    form = await read_body(request, ScheduleForm)
    given = {
        "updates": _updates(form.enabled, form.rollout),
        "scheduledAt": _instant(form.scheduled_at),
        "priority": form.priority,
        "maxRetries": _number("maxRetries", form.max_retries),
    }
    new = _converted(given, NewSchedule)
    await refuse_problems([new])
    [made] = await add_schedules([(request.path_params["flagKey"], new)], admin_name(request))
    return JsonResponse(made, HTTPStatus.CREATED)


@by_admin
async def change_flag(request: Request) -> Response:
    """`POST /forms/flags/{flagKey}`."""
    form = await read_body(request, ChangeForm)
    updates = _converted(_updates(form.enabled, form.rollout), Updates)
    return JsonResponse(await change_now(request.path_params["flagKey"], updates, admin_name(request)))


def _updates(enabled: str, rollout: int | str) -> dict[str, object]:
    if enabled not in _SWITCH:
        raise Problem(HTTPStatus.BAD_REQUEST, f"enabled must be on, off or empty, got {enabled!r}", field="enabled")
    return {"enabled": _SWITCH[enabled], "rollout": _number("rollout", rollout)}


def _number(field: str, value: int | str) -> int | None:
    """A number, None for an empty field."""
    if isinstance(value, str) and value:
        raise Problem(HTTPStatus.BAD_REQUEST, f"{field} must be a whole number, got {value[:50]!r}", field=field)
    return value if isinstance(value, int) else None


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        detail = f"scheduledAt must be a date and a time, got {text[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="scheduledAt") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _converted(values: object, as_type: type[T]) -> T:
    try:
        return msgspec.convert(values, as_type)
    except msgspec.ValidationError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error).replace("`$.", "`")) from None


FORMS: Final[list[BaseRoute]] = [
    Route("/forms/flags", add_flag, methods=["POST"]),
    Route("/forms/flags/{flagKey}", change_flag, methods=["POST"]),
    Route("/forms/flags/{flagKey}/schedules", add_schedule, methods=["POST"]),
]
