"""A stand-in for GlobalSign. Its server asks for a client certificate, its API for a key and a secret as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import REVOKED, Asked, BookedOrder, StandIn

KEY: Final = "gs-stand-in-key-0123456789"
SECRET: Final = "gs-stand-in-secret-0123456789"  # noqa: S105 - opens nothing but this stand-in


class GlobalSignStandIn(StandIn):
    """Knows a certificate by its serial number from the moment it is ordered."""

    authority = Authority.GLOBALSIGN
    is_mutual = True

    def routes(self) -> list[Route]:
        """As GlobalSign has them."""
        return [
            Route("/v2/certificates", self.placing(self._order), methods=["POST"]),
            Route("/v2/certificates/{serial}", self.asking(self._status), methods=["GET"]),
            Route("/v2/certificates/{serial}/revoke", self.plain(self._revoke), methods=["PUT"]),
        ]

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """401 without key and secret."""
        if (headers.get("apikey"), headers.get("apisecret")) == (KEY, SECRET):
            return None
        return JSONResponse({"description": "unauthorised"}, 401)

    def environment(self) -> dict[str, str]:
        """Key and secret."""
        return {"CERTCTL_GLOBALSIGN_API_KEY": KEY, "CERTCTL_GLOBALSIGN_API_SECRET": SECRET}

    def book(self, csr: str) -> BookedOrder:
        """Take an order under its serial number."""
        order = super().book(csr)
        del self.orders[order.id]
        order.id = f"{order.serial:X}"
        self.orders[order.id] = order
        return order

    async def _order(self, asked: Asked) -> Response:
        return JSONResponse({"serial_number": self.book(asked.body["csr"]).id, "status": "pending"}, 201)

    async def _status(self, asked: Asked) -> Response:
        order = self.ask(asked.path["serial"])
        if order is None:
            return JSONResponse({"description": "not found"}, 404)
        word = self.word(order, "issued", "processing", "rejected")
        found = {"certificate": self.certificate(order), "chain": self.chain()} if word == "issued" else {}
        return JSONResponse({"serial_number": order.id, "status": word, **found})

    async def _revoke(self, asked: Asked) -> Response:
        order = self.orders.get(asked.path["serial"])
        if order is None:
            return JSONResponse({"description": "not found"}, 404)
        order.state = REVOKED
        return Response(status_code=204)
