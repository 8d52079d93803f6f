"""The HTTP API of schedules, below `/api/admin`."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure import Page
from perdure_systems.flags.jobs import ACTOR, app, database
from perdure_systems.flags.metrics import measure_retries
from perdure_systems.flags.office import (
    Ahead,
    Found,
    add_schedules,
    cancel_schedule,
    find_schedule,
    history_of,
    list_schedules,
    retry_schedule,
    timeline,
    timeline_of,
)
from perdure_systems.flags.schedules import NewSchedule, Schedule
from perdure_systems.flags.store import find_flag
from perdure_systems.flags.web.access import admin_name, by_admin
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page

_OF_FLAG: Final = "/api/admin/flags/{flagKey}/schedule"
_ONE: Final = f"{_OF_FLAG}/{{scheduleId}}"
_ALL: Final = "/api/admin/flag-schedules"
_SCHEDULES_PER_BATCH_LIMIT: Final = 100


class OfFlag(msgspec.Struct, frozen=True, rename="camel"):
    """One schedule of a batch."""

    flag_key: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    schedule: NewSchedule


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schedules that are made together, or not at all."""

    schedules: Annotated[list[OfFlag], msgspec.Meta(min_length=1, max_length=_SCHEDULES_PER_BATCH_LIMIT)]


class ScheduleList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of schedules, newest first."""

    schedules: list[Schedule]
    page: int
    per_page: int


class Timeline(msgspec.Struct, frozen=True):
    """The runs to come, if each of them fails."""

    runs: list[Ahead]


@by_admin
async def create(request: Request) -> Response:
    """`POST /api/admin/flags/{flagKey}/schedule`: 201 and the schedule."""
    key = request.path_params["flagKey"]
    new = await read_body(request, NewSchedule)
    await refuse_problems([new])
    [made] = await add_schedules([(key, new)], admin_name(request))
    return JsonResponse(made, HTTPStatus.CREATED, {"Location": f"/api/admin/flags/{key}/schedule/{made.id}"})


@by_admin
async def list_of_flag(request: Request) -> Response:
    """`GET /api/admin/flags/{flagKey}/schedule`: its schedules, newest first."""
    key, asked = request.path_params["flagKey"], read_page(request)
    if await find_flag(database, key) is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {key!r}", field="flagKey")
    found = await list_schedules(key, Page(asked.size, number=asked.number))
    return JsonResponse(ScheduleList(found, asked.number, asked.size))


@by_admin
async def list_all(request: Request) -> Response:
    """`GET /api/admin/flag-schedules`: the schedules of all flags, newest first."""
    asked = read_page(request)
    found = await list_schedules(None, Page(asked.size, number=asked.number))
    return JsonResponse(ScheduleList(found, asked.number, asked.size))


@by_admin
async def create_batch(request: Request) -> Response:
    """`POST /api/admin/flag-schedules`: several schedules in one transaction."""
    batch = await read_body(request, Batch)
    await refuse_problems([one.schedule for one in batch.schedules])
    made = await add_schedules([(one.flag_key, one.schedule) for one in batch.schedules], admin_name(request))
    return JsonResponse(ScheduleList(made, 1, len(made)), HTTPStatus.CREATED)


@by_admin
async def show(request: Request) -> Response:
    """`GET …/{scheduleId}`."""
    return JsonResponse((await _asked(request)).schedule)


@by_admin
async def cancel(request: Request) -> Response:
    """`DELETE …/{scheduleId}`: call it off; 400 if it is applied or failed."""
    return JsonResponse(await cancel_schedule(await _asked(request), admin_name(request)))


@by_admin
async def retry(request: Request) -> Response:
    """`POST …/{scheduleId}/retry`: try a failed one again, now."""
    return JsonResponse(await retry_schedule(await _asked(request), admin_name(request)))


@by_admin
async def history(request: Request) -> Response:
    """`GET …/{scheduleId}/history`: every try that failed, and what people did."""
    return JsonResponse(await history_of(await _asked(request)))


@by_admin
async def show_timeline(request: Request) -> Response:
    """`GET …/{scheduleId}/timeline`: the runs to come, if each of them fails."""
    return JsonResponse(Timeline(await timeline_of(await _asked(request))))


@by_admin
async def preview(request: Request) -> Response:
    """`POST …/flag-schedules/preview`: the same for a schedule that is not made yet. Nothing is stored."""
    new = await read_body(request, NewSchedule)
    await refuse_problems([new])
    return JsonResponse(Timeline(timeline(new.policy, new.scheduled_at)))


@by_admin
async def show_metrics(_: Request) -> Response:
    """`GET …/flag-schedules/metrics`: success and failure rates, and the backlog."""
    return JsonResponse(await measure_retries())


async def _asked(request: Request) -> Found:
    return await find_schedule(request.path_params["scheduleId"], request.path_params["flagKey"])


async def refuse_problems(schedules: list[NewSchedule]) -> None:
    """A 400 for the first schedule that cannot be meant."""
    now: datetime = await (await app.desk(ACTOR)).now()
    for new in schedules:
        if (found := new.problem(now)) is not None:
            raise Problem(HTTPStatus.BAD_REQUEST, found[1], field=found[0])


SCHEDULE_ROUTES: Final[list[BaseRoute]] = [
    Route(_OF_FLAG, create, methods=["POST"]),
    Route(_OF_FLAG, list_of_flag, methods=["GET"]),
    Route(_ONE, show, methods=["GET"]),
    Route(_ONE, cancel, methods=["DELETE"]),
    Route(f"{_ONE}/retry", retry, methods=["POST"]),
    Route(f"{_ONE}/history", history, methods=["GET"]),
    Route(f"{_ONE}/timeline", show_timeline, methods=["GET"]),
    Route(_ALL, create_batch, methods=["POST"]),
    Route(_ALL, list_all, methods=["GET"]),
    Route(f"{_ALL}/preview", preview, methods=["POST"]),
    Route(f"{_ALL}/metrics", show_metrics, methods=["GET"]),
]
