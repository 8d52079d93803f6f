"""What the four stand-ins have in common: an order book, a real chain of certificates, and knobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from cryptography import x509
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.behaviour import Behaviour, Reply, Seen
from perdure_systems.authorities.standins.clock import now
from perdure_systems.authorities.standins.pki import as_pem, new_intermediate, new_root, sign_request

_FIRST_NUMBER: Final = 1_000
ISSUED: Final = "issued"
PENDING: Final = "pending"
REJECTED: Final = "rejected"
REVOKED: Final = "revoked"


class Asked(msgspec.Struct, frozen=True):
    """What a request says: the names in its path, and its body."""

    path: dict[str, str]
    body: Any = None


Answering = Callable[[Asked], Awaitable[Response]]


class BookedOrder(msgspec.Struct):
    """An order as the stand-in knows it."""

    id: str
    csr: str
    serial: int
    state: str = PENDING
    polls: int = 0
    collects: int = 0
    certificate: str = ""


class StandIn:
    """A certificate authority on this machine. Subclasses say how it speaks."""

    authority: Authority
    is_mutual: bool = False

    def __init__(self) -> None:
        self.behaviour = Behaviour()
        self.clock: Callable[[], float] = time.monotonic  # of the requests that it has seen
        self.orders: dict[str, BookedOrder] = {}
        self.seen: list[Seen] = []
        title = self.authority.title
        self.root = new_root(f"{title} stand-in root", now())
        self.intermediate = new_intermediate(self.root, f"{title} stand-in issuing", now())
        self._foreign = new_intermediate(new_root("nobody's root", now()), "nobody", now())
        self._next = _FIRST_NUMBER

    def routes(self) -> list[Route]:
        """The paths of this authority."""
        raise NotImplementedError

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """The answer to a request without the right keys; None: it may pass."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """The variables that lead our connector here, but for its address and files."""
        raise NotImplementedError

    @property
    def app(self) -> Starlette:
        """The stand-in as an application."""
        return Starlette(routes=self.routes())

    @property
    def asked(self) -> list[float]:
        """When the status of an order was requested, with any response."""
        return [seen.at for seen in self.seen if seen.is_status]

    def reset(self) -> None:
        """Delete all orders and requests, and reset the behaviour."""
        self.behaviour, self.orders, self.seen, self.clock = Behaviour(), {}, [], time.monotonic
        self._next = _FIRST_NUMBER

    def approve(self, order_id: str) -> None:
        """Issue an order now, as a person would."""
        self._issue(self.orders[order_id])

    def reject(self, order_id: str) -> None:
        """Refuse an order."""
        self.orders[order_id].state = REJECTED

    def book(self, csr: str) -> BookedOrder:
        """Take an order."""
        self._next += 1
        order = BookedOrder(self.order_id(self._next), csr, x509.random_serial_number())
        self.orders[order.id] = order
        return order

    def order_id(self, number: int) -> str:
        """The id of a new order."""
        return str(number)

    def ask(self, order_id: str) -> BookedOrder | None:
        """An order that is asked about: it counts, and may be issued by it."""
        order = self.orders.get(order_id)
        if order is None:
            return None
        order.polls += 1
        if self.behaviour.rejected_word is not None:
            order.state = REJECTED
        after = self.behaviour.approve_after
        if order.state == PENDING and after is not None and order.polls >= after:
            self._issue(order)
        return order

    def word(self, order: BookedOrder, issued: str, pending: str, rejected: str) -> str:
        """The status of an order in the words of this authority, or in those that the knobs ask for."""
        if order.state in {ISSUED, REVOKED}:
            return issued
        if order.state == REJECTED:
            return self.behaviour.rejected_word or rejected
        return self.behaviour.pending_word or pending

    def by_serial(self, serial: str) -> BookedOrder | None:
        """The order whose certificate has this serial number, in hexadecimal."""
        number = int(serial, 16) if all(digit in "0123456789abcdefABCDEF" for digit in serial) else -1
        return next((order for order in self.orders.values() if order.serial == number), None)

    def certificate(self, order: BookedOrder) -> str:
        """The leaf as PEM; nothing if a knob says so."""
        return "" if self.behaviour.issued_without_certificate else order.certificate

    def chain(self) -> str:
        """What stands between a leaf and the root."""
        return self.intermediate.pem

    def placing(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for new orders."""
        return self._endpoint(answer, lambda: self.behaviour.place)

    def asking(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for the status of an order, which the knobs can spoil."""
        return self._endpoint(answer, self._spoilt, is_status=True)

    def plain(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that ignores the configured failures."""
        return self._endpoint(answer, lambda: None)

    def _spoilt(self) -> Reply | None:
        return self.behaviour.replies.popleft() if self.behaviour.replies else self.behaviour.always

    def _endpoint(
        self, answer: Answering, instead: Callable[[], Reply | None], *, is_status: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            text = await request.body()
            body = msgspec.json.decode(text) if text else None
            headers = dict(request.headers)
            port = request.client.port if request.client is not None else 0
            self.seen.append(Seen(self.clock(), request.method, request.url.path, headers, body, is_status, port))
            if self.behaviour.latency:
                await asyncio.sleep(self.behaviour.latency)
            refused = self.refusal(request.headers)
            reply = instead()
            if refused is not None:
                return refused
            if reply is None:
                return await self._dripping(await answer(Asked(request.path_params, body)))
            said = msgspec.json.encode(headers) if self.behaviour.echo_secrets else reply.body
            return await self._dripping(Response(said, reply.status, reply.headers))

        return endpoint

    async def _dripping(self, response: Response) -> Response:
        if not self.behaviour.drip:
            return response

        async def drops() -> AsyncIterator[bytes]:
            for byte in bytes(response.body):
                yield bytes([byte])
                await asyncio.sleep(self.behaviour.drip)

        return StreamingResponse(drops(), response.status_code)

    def _issue(self, order: BookedOrder) -> None:
        issuer = self._foreign if self.behaviour.foreign_chain else self.intermediate
        csr = x509.load_pem_x509_csr(order.csr.encode())
        order.certificate = as_pem(sign_request(issuer, csr, order.serial, now()))
        order.state = ISSUED
