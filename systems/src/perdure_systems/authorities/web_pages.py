"""The pages: orders with how far their polling is, one order, and the authorities."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import Jitter, Page, Retry
from perdure_systems.authorities.connectors import Reason
from perdure_systems.authorities.jobs import QUEUE, WAITS, app
from perdure_systems.authorities.orders import STATUSES, OrderView, count_orders, find_order, list_orders
from perdure_systems.authorities.routes import authority_fields, read_authority, read_states
from perdure_systems.authorities.settings import Authority
from perdure_systems.kit.pages import Link, Pages
from perdure_systems.kit.web import read_page

_ORDERS_PER_PAGE: Final = 25
_DOTS_LIMIT: Final = 12
_MARGIN_UNITS: Final = 10  # of the picture that is 700 wide
_WIDTH_UNITS: Final = 680
_TABS: Final = ("", "open", "issued", "failed", "cancelled")

pages = Pages(
    "Authorities",
    Path(__file__).parent / "templates",
    [Link("Orders", "/"), Link("Authorities", "/authorities"), Link("New order", "/new")],
    jobs=f"queue:{QUEUE}",
)


async def orders_page(request: Request) -> Response:
    """GET /: the orders, newest first."""
    page, authority, states = read_page(request, size=_ORDERS_PER_PAGE), read_authority(request), read_states(request)
    found, more = await list_orders(Page(limit=page.size, number=page.number), authority=authority, states=states)
    counts = {tab: await count_orders(authority, STATUSES.get(tab, ())) for tab in _TABS}
    status = request.query_params.get("status", "")
    return pages.render(
        "orders.html",
        here="/?status=failed" if status == "failed" else "/",
        links=await _links(),
        orders=found,
        counts=counts,
        status=status,
        authority=authority,
        authorities=list(Authority),
        number=page.number,
        has_more=more is not None,
        now=await (await app.desk("page")).now(),
    )


async def order_page(request: Request) -> Response:
    """GET /orders/{id}: one order."""
    order = await find_order(request.path_params["id"])
    desk = await app.desk("page")
    detail = await desk.job(order.id)
    why = await desk.why(order.id) if order.is_open else None
    return pages.render(
        "order.html",
        here="/",
        links=await _links(),
        order=order,
        why=why,
        reasons=list(Reason),
        plan=_plan(order) if order.is_open and order.authority_order else [],
        lines=detail.lines[-20:],
        audit=(await desk.audit(job=str(detail.job.id), limit=20)).entries,
    )


async def authorities_page(_: Request) -> Response:
    """GET /authorities: who can be asked for certificates."""
    found = [await authority_fields(authority) for authority in Authority]
    return pages.render("authorities.html", here="/authorities", links=await _links(), authorities=found)


async def new_page(_: Request) -> Response:
    """GET /new: a form for an order."""
    found = [await authority_fields(authority) for authority in Authority]
    return pages.render("new.html", here="/new", links=await _links(), authorities=found)


async def _links() -> list[Link]:
    failed = await count_orders(states=STATUSES["failed"])
    return [
        Link("Orders", "/", await count_orders(states=STATUSES["open"])),
        Link("Failed", "/?status=failed", failed, is_urgent=failed > 0),
        Link("Authorities", "/authorities"),
        Link("New order", "/new"),
    ]


class Dot(msgspec.Struct, frozen=True):
    """A poll of this round, as planned: without jitter and without Retry-After."""

    x: float
    label: str
    is_made: bool


def _plan(order: OrderView) -> list[Dot]:
    """The polls of a round, side by side; none if there are too many to show."""
    longest = timedelta(seconds=order.max_wait_seconds)
    plan = Retry(attempts=None, backoff=WAITS, jitter=Jitter.none(), within=longest).preview(_DOTS_LIMIT + 1)
    if not 1 < len(plan) <= _DOTS_LIMIT:
        return []
    gap = _WIDTH_UNITS / (len(plan) - 1)
    return [
        Dot(
            round(_MARGIN_UNITS + gap * number, 1),
            f"{poll.earliest.total_seconds():g} s",
            number < order.polls_in_round,
        )
        for number, poll in enumerate(plan)
    ]


PAGES = [
    Route("/", orders_page),
    Route("/new", new_page),
    Route("/authorities", authorities_page),
    Route("/orders/{id}", order_page),
]
