"""The HTTP API: list, get, create, requeue, mark as read; the dashboard's summary and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Final, TypeVar
from uuid import UUID

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure import JobFilter, JobState, NotFoundError, Page, PerdureError
from perdure_systems.kit.metrics import METRICS, serve_metrics
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page
from perdure_systems.notifications.channels.message import Channel, Severity
from perdure_systems.notifications.jobs import KIND, app, notify
from perdure_systems.notifications.records import READ, Notification, notification_of, which_have
from perdure_systems.notifications.summary import Snapshot, as_collector, take_snapshot

E = TypeVar("E", Channel, Severity)

ACTOR: Final = "notifications-api"
_LIST: Final = "/api/v1/notifications"
ROWS_REACHED_LIMIT: Final = 10_000  # the engine counts pages no further

log = structlog.get_logger("perdure_systems.notifications")


class NewNotification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that creates a notification."""

    channel: str
    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    body: Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]
    recipient: Annotated[str, msgspec.Meta(max_length=254)] = ""
    severity: str | None = None


class NotificationPage(msgspec.Struct, frozen=True):
    """A page of the list; `total` counts at most 10,000 for each status."""

    data: list[Notification]
    total: int
    page: int
    per_page: int


async def notifications(request: Request) -> Response:
    """List them, or create one."""
    return await (create_notification if request.method == "POST" else list_notifications)(request)


async def list_notifications(request: Request) -> Response:
    """`GET /api/v1/notifications?status=dead&page=1&per_page=50`: newest first."""
    return JsonResponse(await read_list(request, request.query_params.get("status") or None))


async def read_list(request: Request, status: str | None) -> NotificationPage:
    """The page of the list that a request asks for."""
    asked, which = read_page(request), which_have(status)
    if asked.number * asked.size > ROWS_REACHED_LIMIT:
        detail = (
            f"page must end within the first {ROWS_REACHED_LIMIT:,} notifications, got {asked.number}: filter by status"
        )
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="page")
    desk = await app.desk(ACTOR)
    found = await desk.jobs(which, Page(asked.size, number=asked.number))
    total = await desk.count(which)
    return NotificationPage([notification_of(job) for job in found.jobs], total.jobs, asked.number, asked.size)


async def create_notification(request: Request) -> Response:
    """`POST /api/v1/notifications`: 201 and the notification, which is sent by a worker."""
    new = await read_body(request, NewNotification)
    channel = _one_of(Channel, "channel", new.channel)
    severity = None if new.severity is None else _one_of(Severity, "severity", new.severity)
    if channel is Channel.EMAIL and new.recipient:
        _check_address(new.recipient)
    handle = await notify.enqueue(
        channel=channel, subject=new.subject, body=new.body, recipient=new.recipient or None, severity=severity
    )
    made = notification_of(await handle.view())
    return JsonResponse(made, HTTPStatus.CREATED, {"Location": f"{_LIST}/{made.id}"})


async def get_notification(request: Request) -> Response:
    """`GET /api/v1/notifications/{id}`."""
    return JsonResponse(await read_one(request))


async def read_one(request: Request) -> Notification:
    """The notification that the path names; a 404 if there is none, also if the id is that of another kind of job."""
    found = (await (await app.desk(ACTOR)).jobs(JobFilter(ids=(_id_of(request),), kind=KIND), Page(1))).jobs
    if not found:
        raise _unknown(request)
    return notification_of(found[0])


async def requeue_notification(request: Request) -> Response:
    """`POST /api/v1/notifications/{id}/requeue`: a new life for a dead one; only a dead one has use for it."""
    which = JobFilter(ids=(_id_of(request),), kind=KIND, states=(JobState.DEAD,))
    changed = await (await app.desk(ACTOR)).requeue(which)
    if not changed.ids:
        status = (await read_one(request)).status
        raise Problem(HTTPStatus.BAD_REQUEST, f"the notification is {status}: only a dead one is requeued", field="id")
    log.info("notification requeued", notification=changed.ids[0])
    return JsonResponse({"status": "requeued"})


async def mark_notification_read(request: Request) -> Response:
    """`POST /api/v1/notifications/{id}/read`."""
    changed = await (await app.desk(ACTOR)).mark(JobFilter(ids=(_id_of(request),), kind=KIND), READ)
    if not changed.ids:
        raise _unknown(request)
    return JsonResponse({"status": "marked_as_read"})


async def snapshot() -> Snapshot:
    """The numbers of all surfaces. Without a store the dashboard is shown with 0."""
    try:
        desk = await app.desk(ACTOR)
    except (PerdureError, OSError) as error:
        log.warning("there is no store of notifications", error=f"{type(error).__name__}: {error}")
        return await take_snapshot(None)
    return await take_snapshot(desk)


async def get_summary(_: Request) -> Response:
    """`GET /api/v1/stats/summary`: the dashboard's numbers."""
    return JsonResponse(await snapshot())


async def get_metrics(request: Request) -> Response:
    """`GET /metrics`, for Prometheus: the engine's metrics, and the number that the summary shows."""
    return await serve_metrics(request, app, [as_collector(await snapshot())])


def _id_of(request: Request) -> str:
    given = str(request.path_params["id"])
    try:
        return str(UUID(given))
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, f"id must be a UUID, got {given[:50]!r}", field="id") from None


def _unknown(request: Request) -> NotFoundError:
    return NotFoundError(f"there is no notification {_id_of(request)}")


def _one_of(words: type[E], field: str, value: str) -> E:
    try:
        return words(value)
    except ValueError:
        detail = f"{field} must be one of {', '.join(words)}, got {value[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field=field) from None


def _check_address(recipient: str) -> None:
    name, _, host = recipient.rpartition("@")
    if not (name and host) or not recipient.isprintable() or any(mark in recipient for mark in " ,;<>"):
        detail = f"recipient must be one e-mail address such as ops@example.com, got {recipient[:80]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="recipient")


API: Final[Sequence[BaseRoute]] = (
    Route(_LIST, notifications, methods=["GET", "POST"]),
    Route(f"{_LIST}/{{id}}", get_notification, methods=["GET"]),
    Route(f"{_LIST}/{{id}}/requeue", requeue_notification, methods=["POST"]),
    Route(f"{_LIST}/{{id}}/read", mark_notification_read, methods=["POST"]),
    Route("/api/v1/stats/summary", get_summary, methods=["GET"]),
    Route(METRICS, get_metrics, methods=["GET"]),
)
