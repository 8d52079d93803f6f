"""The pages: what needs a person, the figures of retries, flags, schedules, one schedule with its past and future."""

from __future__ import annotations

import re
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from perdure import Page
from perdure_systems.flags.jobs import APPLY, QUEUE, database
from perdure_systems.flags.metrics import RetryMetrics, measure_retries
from perdure_systems.flags.office import failing_schedules, find_schedule, history_of, list_schedules, timeline_of
from perdure_systems.flags.schedules import APPLIED, CANCELLED, FAILED, PENDING, Priority, Schedule
from perdure_systems.flags.settings import MOST_RETRIES, max_retries
from perdure_systems.flags.store import list_changes, list_flags
from perdure_systems.flags.web.access import COOKIE, Caller, Handler, caller_of, caller_with
from perdure_systems.flags.web.forms import FORMS
from perdure_systems.kit.pages import DESK, Link, Pages

REFRESH_SECONDS: Final = 10
CHIPS: Final = {PENDING: "ready", FAILED: "retrying", APPLIED: "done", CANCELLED: "cancelled"}
TABS: Final = ("all", PENDING, FAILED, APPLIED, CANCELLED)
ON_DESK: Final = {
    "Attempts by the hour": f"{DESK}/kinds/{APPLY}",
    "Why schedules failed": f"{DESK}/dead?q=kind%3A{APPLY}",
    "Breakers": f"{DESK}/gates",
    "Alerts": f"{DESK}/alerts",
}
"""What the engine counts and shows."""
_SCHEDULES_SHOWN: Final = 200
_FORM_LIMIT_BYTES: Final = 500
_MODULE: Final = re.compile(r"^(?:\w+\.)+(?=\w+: )")
_PAGES: Final = Pages("Flags", Path(__file__).parent / "templates", (), jobs=f"queue:{QUEUE}")


def signed_in(handler: Handler) -> Handler:
    """Admit admins, and send all others to the sign-in page."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        caller = caller_of(request)
        if caller is None or not caller.is_admin:
            return RedirectResponse("/sign-in", HTTPStatus.SEE_OTHER)
        request.state.caller = caller
        return await handler(request)

    return guarded


@signed_in
async def show_overview(request: Request) -> Response:
    """What needs a person, the figures, and what comes next."""
    metrics, failing = await measure_retries(), await failing_schedules(_SCHEDULES_SHOWN)
    latest = await list_schedules(None, Page(_SCHEDULES_SHOWN))
    return await _render(
        request,
        "overview.html",
        here="/",
        metrics=metrics,
        given_up=[one for one in failing if one.needs_operator],
        retrying=[one for one in failing if not one.needs_operator],
        next_up=sorted((one for one in latest if one.status == PENDING), key=lambda one: one.scheduled_at)[:8],
        percent=percent,
        on_desk=ON_DESK,
        age=age,
    )


@signed_in
async def show_flags(request: Request) -> Response:
    """All flags."""
    return await _render(request, "flags.html", here="/flags", flags=await list_flags(database))


@signed_in
async def show_flag(request: Request) -> Response:
    """One flag: its schedules and its changes."""
    key = request.path_params["flagKey"]
    flag = next((one for one in await list_flags(database) if one.key == key), None)
    schedules = await list_schedules(key, Page(_SCHEDULES_SHOWN))
    changes = await list_changes(database, key)
    if flag is None and not changes:
        return await _render(request, "missing.html", here="/flags", status=HTTPStatus.NOT_FOUND, what=f"flag {key}")
    return await _render(
        request,
        "flag.html",
        here="/flags",
        key=key,
        flag=flag,
        changes=changes,
        schedules=schedules,
        priorities=tuple(Priority),
        default_retries=max_retries(),
        most_retries=MOST_RETRIES,
    )


@signed_in
async def show_schedules(request: Request) -> Response:
    """The latest schedules of all flags, by status."""
    tab = request.query_params.get("status", "all")
    found = await list_schedules(None, Page(_SCHEDULES_SHOWN))
    counts = {name: sum(one.status == name for one in found) for name in TABS} | {"all": len(found)}
    return await _render(
        request,
        "schedules.html",
        here="/schedules",
        tab=tab if tab in TABS else "all",
        tabs=TABS,
        counts=counts,
        most=_SCHEDULES_SHOWN,
        schedules=[one for one in found if tab not in TABS[1:] or one.status == tab],
    )


@signed_in
async def show_schedule(request: Request) -> Response:
    """One schedule: why it is not applied, what was tried, what comes."""
    found = await find_schedule(request.path_params["scheduleId"])
    history = await history_of(found)
    return await _render(
        request,
        "schedule.html",
        here="/schedules",
        one=found.schedule,
        history=history,
        ahead=await timeline_of(found),
        explain=explain,
    )


async def show_sign_in(_: Request) -> Response:
    """The form that takes a token."""
    return _PAGES.render("sign_in.html", here="/sign-in", links=(), wrong=False)


async def sign_in(request: Request) -> Response:
    """Keep a valid token in a cookie that no script can read."""
    given = parse_qs((await request.body())[:_FORM_LIMIT_BYTES].decode(errors="replace"))
    token = given.get("token", [""])[0].strip()
    caller = caller_with(token)
    if caller is None or not caller.is_admin:
        answer = _PAGES.render("sign_in.html", here="/sign-in", links=(), wrong=True)
        answer.status_code = HTTPStatus.UNAUTHORIZED
        return answer
    back = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    is_secure = request.url.scheme == "https"
    back.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=is_secure, max_age=12 * 3_600)
    return back


async def sign_out(_: Request) -> Response:
    """Forget the token."""
    back = RedirectResponse("/sign-in", HTTPStatus.SEE_OTHER)
    back.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return back


def explain(one: Schedule) -> str:
    """The reason for a schedule's status, in a sentence."""
    if one.status == PENDING:
        return "It waits for its time."
    if one.status == CANCELLED:
        return f"It was cancelled by {one.cancelled_by}."
    if one.status == APPLIED:
        return "The flag is changed." if not one.retry_count else f"The flag is changed, on retry {one.retry_count}."
    subject = "The flag is changed, and its cache does not take the invalidation." if one.flag_changed_at else ""
    if one.needs_operator:
        return f"{subject} It is given up, and waits for a person.".strip()
    return f"{subject} It has failed and is tried again, {one.retry_count} of {one.max_retries}.".strip()


def plain(error: str | None) -> str:
    """An error without the module of its type."""
    return _MODULE.sub("", error or "")


def percent(share: float | None) -> str:
    """A share as people read it."""
    return "-" if share is None else f"{share * 100:.1f}".rstrip("0").rstrip(".")


def age(seconds: float) -> str:
    """A span as people read it."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


async def _render(
    request: Request, template: str, *, here: str, status: int = HTTPStatus.OK, **values: Any
) -> Response:
    caller: Caller = request.state.caller
    metrics: RetryMetrics = values.get("metrics") or await measure_retries()
    links = (
        Link("Overview", "/", metrics.given_up or None, is_urgent=metrics.given_up > 0),
        Link("Flags", "/flags"),
        Link("Schedules", "/schedules", metrics.backlog.waiting or None),
    )
    shared = {"plain": plain, "chips": CHIPS, "refresh_seconds": REFRESH_SECONDS, "caller": caller}
    answer = _PAGES.render(template, here=here, links=links, **shared, **values)
    answer.status_code = status
    return answer


PAGES: Final[list[BaseRoute]] = [
    Route("/", show_overview, methods=["GET"]),
    Route("/flags", show_flags, methods=["GET"]),
    Route("/flags/{flagKey}", show_flag, methods=["GET"]),
    Route("/schedules", show_schedules, methods=["GET"]),
    Route("/schedules/{scheduleId}", show_schedule, methods=["GET"]),
    Route("/sign-in", show_sign_in, methods=["GET"]),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    *FORMS,
]
