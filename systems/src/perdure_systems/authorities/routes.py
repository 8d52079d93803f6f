"""The API of the orders."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import Page, SettingsError
from perdure_systems.authorities import jobs
from perdure_systems.authorities.connectors import Reason
from perdure_systems.authorities.csr import read_request
from perdure_systems.authorities.jobs import app, issue
from perdure_systems.authorities.orders import STATUSES, OrderView, count_orders, find_order, list_orders
from perdure_systems.authorities.settings import Authority, max_wait_of, read_settings
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page

Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
_CHAIN_TYPE = "application/pem-certificate-chain"


class NewOrder(msgspec.Struct, forbid_unknown_fields=True):
    """What `POST /api/v1/orders` takes. The same `reference` again is the same order."""

    authority: Authority
    csr: str
    reference: Reference | None = None


class Revocation(msgspec.Struct, forbid_unknown_fields=True):
    """What a revocation may say."""

    reason: Reason = Reason.UNSPECIFIED


class Cancellation(msgspec.Struct, forbid_unknown_fields=True):
    """What a cancellation may say."""

    why: Annotated[str, msgspec.Meta(max_length=500)] = ""


def order_fields(order: OrderView) -> dict[str, Any]:
    """An order as the API shows it. The chain has a path of its own."""
    fields: dict[str, Any] = msgspec.to_builtins(order)
    del fields["tone"]
    if fields["certificate"] is not None:
        del fields["certificate"]["chain"]
        fields["chain"] = f"/api/v1/orders/{order.id}/chain"
    return fields


async def authorities(_: Request) -> Response:
    """GET /api/v1/authorities: which are configured, and how long a round takes."""
    return JsonResponse({"authorities": [await authority_fields(authority) for authority in Authority]})


async def authority_fields(authority: Authority) -> dict[str, Any]:
    """An authority as the API shows it: no secret, and no file."""
    shown: dict[str, Any] = {"name": authority.value, "title": authority.title, "problem": None, "url": None}
    try:
        settings = read_settings(authority)
        shown["url"], shown["mutual_tls"] = settings.url, settings.client_certificate is not None
        shown["max_wait_seconds"] = int(max_wait_of(authority).total_seconds())
    except SettingsError as error:
        shown["problem"] = str(error)
    shown["configured"] = shown["problem"] is None
    shown["open"] = await count_orders(authority, STATUSES["open"])
    shown["failed"] = await count_orders(authority, STATUSES["failed"])
    return shown


async def place(request: Request) -> Response:
    """POST /api/v1/orders: 202 with the order id at once; 200 if the reference is known."""
    wanted = await read_body(request, NewOrder)
    signing = read_request(wanted.csr)
    handle = await issue(wanted.authority, signing, wanted.reference)
    view = await handle.view()
    order = await find_order(view.ref or str(view.id))
    asked = read_request((view.arguments or {})["csr"])
    if order.authority is not wanted.authority or (asked.names, asked.key) != (signing.names, signing.key):
        detail = (
            f"reference {wanted.reference!r} is taken by an order for {order.names[0]} at {order.authority.title}"
            f"{', with another key' if asked.key != signing.key else ''}"
        )
        raise Problem(HTTPStatus.CONFLICT, detail, field="reference")
    code = HTTPStatus.ACCEPTED if handle.is_new else HTTPStatus.OK
    return JsonResponse(order_fields(order), code, headers={"Location": f"/api/v1/orders/{order.id}"})


async def orders(request: Request) -> Response:
    """GET /api/v1/orders?authority=&status=&page=&per_page=."""
    page, authority, states = read_page(request), read_authority(request), read_states(request)
    found, more = await list_orders(Page(limit=page.size, number=page.number), authority=authority, states=states)
    return JsonResponse({"orders": [order_fields(order) for order in found], "has_more": more is not None})


async def order(request: Request) -> Response:
    """GET /api/v1/orders/{id}."""
    return JsonResponse(order_fields(await find_order(request.path_params["id"])))


async def chain(request: Request) -> Response:
    """GET /api/v1/orders/{id}/chain: the certificate and its intermediates, leaf first."""
    found = await find_order(request.path_params["id"])
    if found.certificate is None:
        raise Problem(HTTPStatus.CONFLICT, f"order {found.id} is {found.status}: there is no certificate yet")
    headers = {"Content-Disposition": f'attachment; filename="{found.id}.pem"'}
    return Response(found.certificate.chain, headers=headers, media_type=_CHAIN_TYPE)


async def poll(request: Request) -> Response:
    """POST /api/v1/orders/{id}/poll: ask the authority now, without waiting for the next poll."""
    found = await find_order(request.path_params["id"])
    await (await app.desk("api")).run_now(found.id)
    return JsonResponse(order_fields(await find_order(found.id)), HTTPStatus.ACCEPTED)


async def cancel(request: Request) -> Response:
    """POST /api/v1/orders/{id}/cancel: stop polling. The authority is not told."""
    body = await read_body(request, Cancellation)
    found = await find_order(request.path_params["id"])
    await (await app.desk("api")).cancel(found.id, why=body.why)
    return JsonResponse(order_fields(await find_order(found.id)), HTTPStatus.ACCEPTED)


async def requeue(request: Request) -> Response:
    """POST /api/v1/orders/{id}/requeue: a failed or cancelled order is polled again, not placed again."""
    found = await find_order(request.path_params["id"])
    if found.certificate is not None:
        raise Problem(HTTPStatus.CONFLICT, f"order {found.id} is {found.status}: place a new one")
    await (await app.desk("api")).requeue(found.id)
    return JsonResponse(order_fields(await find_order(found.id)), HTTPStatus.ACCEPTED)


async def revoke(request: Request) -> Response:
    """POST /api/v1/orders/{id}/revoke: revoke the certificate at its authority, in a job of its own."""
    body = await read_body(request, Revocation)
    found = await find_order(request.path_params["id"])
    certificate = found.certificate
    if certificate is None:
        raise Problem(HTTPStatus.CONFLICT, f"order {found.id} is {found.status}: there is no certificate to revoke")
    if certificate.revoked_at is None:
        await jobs.revoke(certificate, body.reason)
    return JsonResponse(order_fields(await find_order(found.id)), HTTPStatus.ACCEPTED)


def read_authority(request: Request) -> Authority | None:
    """The authority that the query names, if it names one."""
    name = request.query_params.get("authority", "")
    if name and name not in set(Authority):
        detail = f"authority must be one of {', '.join(Authority)}, got {name[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="authority")
    return Authority(name) if name else None


def read_states(request: Request) -> frozenset[Any]:
    """The states that the status of the query means; none: all."""
    name = request.query_params.get("status", "")
    if name and name not in STATUSES:
        detail = f"status must be one of {', '.join(STATUSES)}, got {name[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="status")
    return STATUSES.get(name, frozenset())


API = [
    Route("/api/v1/authorities", authorities),
    Route("/api/v1/orders", orders),
    Route("/api/v1/orders", place, methods=["POST"]),
    Route("/api/v1/orders/{id}", order),
    Route("/api/v1/orders/{id}/chain", chain),
    Route("/api/v1/orders/{id}/poll", poll, methods=["POST"]),
    Route("/api/v1/orders/{id}/cancel", cancel, methods=["POST"]),
    Route("/api/v1/orders/{id}/requeue", requeue, methods=["POST"]),
    Route("/api/v1/orders/{id}/revoke", revoke, methods=["POST"]),
]
