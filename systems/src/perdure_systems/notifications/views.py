"""The pages: all notifications and the dead letters as two tabs, one notification, and a form for a new one.

A tab is an address. The list under it is loaded again every 30 seconds from that same address, so the data of one tab
cannot appear under the other, however late an answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure_systems.kit.pages import Link, Pages
from perdure_systems.notifications.channels.message import Channel, Severity
from perdure_systems.notifications.jobs import QUEUE, app
from perdure_systems.notifications.records import Notification, error_text
from perdure_systems.notifications.routes import ACTOR, ROWS_REACHED_LIMIT, read_list, read_one, snapshot
from perdure_systems.notifications.settings import notifier_for
from perdure_systems.notifications.summary import Snapshot

REFRESH_SECONDS: Final = 30
_CHIP: Final = {"pending": "ready", "failed": "retrying", "sent": "done", "dead": "dead", "cancelled": "cancelled"}


class Tab(msgspec.Struct, frozen=True):
    """One view of the list."""

    name: str
    title: str
    path: str
    status: str | None
    empty: tuple[str, str]


ALL: Final = Tab(
    "all", "All", "/", None, ("No notifications yet", "Send one with the form, or POST /api/v1/notifications.")
)
DEAD: Final = Tab("dead", "Dead letter", "/dead", "dead", ("No dead letters", "Nothing has used up its five attempts."))
_PAGES: Final = Pages("Notifications", Path(__file__).parent / "templates", (), jobs=f"queue:{QUEUE}")


async def show_all(request: Request) -> Response:
    """The tab with all notifications."""
    return await _show_tab(request, ALL)


async def show_dead(request: Request) -> Response:
    """The tab with the dead letters."""
    return await _show_tab(request, DEAD)


async def _show_tab(request: Request, tab: Tab) -> Response:
    page = await read_list(request, tab.status)
    counted = await snapshot()
    return _PAGES.render(
        "list.html",
        here="/",
        links=_links(counted),
        tabs=(ALL, DEAD),
        tab=tab,
        page=page,
        more=page.page * page.per_page < page.total and (page.page + 1) * page.per_page <= ROWS_REACHED_LIMIT,
        counted=counted,
        chips=_CHIP,
        retry_text=retry_text,
        refresh_seconds=REFRESH_SECONDS,
    )


async def show_one(request: Request) -> Response:
    """One notification with every attempt that failed."""
    one = await read_one(request)
    detail = await (await app.desk(ACTOR)).job(one.id)
    attempts = [(attempt, error_text(f"{attempt.error_type}: {attempt.message}")) for attempt in detail.attempts]
    return _PAGES.render(
        "one.html",
        here="/",
        links=_links(await snapshot()),
        one=one,
        attempts=attempts,
        receipt=detail.job.value,
        chips=_CHIP,
        retry_text=retry_text,
        refresh_seconds=REFRESH_SECONDS,
    )


async def show_form(_: Request) -> Response:
    """A form for a new notification."""
    channels = [(channel, notifier_for(channel) is not None) for channel in Channel]
    return _PAGES.render(
        "new.html", here="/new", links=_links(await snapshot()), channels=channels, severities=tuple(Severity)
    )


def retry_text(one: Notification) -> str:
    """How many attempts have failed, of how many: `Retry 2/5`; of a sent one, which attempt delivered it."""
    if not one.retry_count:
        return ""
    if one.delivered_on_attempt:
        return f"on attempt {one.delivered_on_attempt}"
    return f"Retry {one.retry_count}/{one.max_attempts}"


def _links(counted: Snapshot) -> Sequence[Link]:
    dead = counted.notifications_dead
    return (Link("Notifications", "/", dead or None, is_urgent=dead > 0), Link("Send one", "/new"))


VIEWS: Final[Sequence[BaseRoute]] = (
    Route(ALL.path, show_all, methods=["GET"]),
    Route(DEAD.path, show_dead, methods=["GET"]),
    Route("/new", show_form, methods=["GET"]),
    Route("/notifications/{id}", show_one, methods=["GET"]),
)
