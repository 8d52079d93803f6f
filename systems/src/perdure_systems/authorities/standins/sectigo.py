"""A stand-in for Sectigo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import ISSUED, REVOKED, Asked, StandIn

CUSTOMER: Final = "stand-in-customer"
LOGIN: Final = "stand-in-login"
PASSWORD: Final = "stand-in-password-0123456789"  # noqa: S105 - opens nothing but this stand-in


class SectigoStandIn(StandIn):
    """Checks three headers; an issued certificate may not be ready to be collected: 400 with code -183."""

    authority = Authority.SECTIGO

    def routes(self) -> list[Route]:
        """As Sectigo has them."""
        return [
            Route("/ssl/v1/enroll", self.placing(self._enroll), methods=["POST"]),
            Route("/ssl/v1/collect/{ssl_id}/pem", self.plain(self._collect), methods=["GET"]),
            Route("/ssl/v1/revoke/{ssl_id}", self.plain(self._revoke), methods=["POST"]),
            Route("/ssl/v1/{ssl_id}", self.asking(self._status), methods=["GET"]),
        ]

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """401 without the three."""
        given = tuple(headers.get(name) for name in ("customeruri", "login", "password"))
        if given == (CUSTOMER, LOGIN, PASSWORD):
            return None
        return JSONResponse({"code": -16, "description": "Unknown user"}, 401)

    def environment(self) -> dict[str, str]:
        """Who we are, and what we order."""
        return {
            "CERTCTL_SECTIGO_CUSTOMER_URI": CUSTOMER,
            "CERTCTL_SECTIGO_LOGIN": LOGIN,
            "CERTCTL_SECTIGO_PASSWORD": PASSWORD,
            "CERTCTL_SECTIGO_ORG_ID": "7",
            "CERTCTL_SECTIGO_CERT_TYPE": "423",
        }

    async def _enroll(self, asked: Asked) -> Response:
        order = self.book(asked.body["csr"])
        return JSONResponse({"sslId": int(order.id), "renewId": "renew"})

    async def _status(self, asked: Asked) -> Response:
        order = self.ask(asked.path["ssl_id"])
        if order is None:
            return JSONResponse({"code": -105, "description": "Unknown certificate"}, 404)
        return JSONResponse({"sslId": int(order.id), "status": self.word(order, "Issued", "Applied", "Rejected")})

    async def _collect(self, asked: Asked) -> Response:
        order = self.orders.get(asked.path["ssl_id"])
        if order is None or order.state != ISSUED:
            return JSONResponse({"code": -105, "description": "Unknown certificate"}, 400)
        order.collects += 1
        if order.collects <= self.behaviour.not_ready:
            return JSONResponse({"code": -183, "description": "Certificate is not collectable"}, 400)
        return PlainTextResponse(self.certificate(order) + (self.chain() if self.certificate(order) else ""))

    async def _revoke(self, asked: Asked) -> Response:
        order = self.orders.get(asked.path["ssl_id"])
        if order is None:
            return JSONResponse({"code": -105, "description": "Unknown certificate"}, 404)
        order.state = REVOKED
        return Response(status_code=204)
