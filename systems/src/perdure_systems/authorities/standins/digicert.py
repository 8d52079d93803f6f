"""A stand-in for DigiCert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import REVOKED, Asked, StandIn

KEY: Final = "dc-stand-in-key-0123456789"


class DigiCertStandIn(StandIn):
    """Checks X-DC-DEVKEY; an issued order names a certificate id, which is downloaded."""

    authority = Authority.DIGICERT

    def routes(self) -> list[Route]:
        """As DigiCert has them."""
        return [
            Route("/order/certificate/{product}", self.placing(self._order), methods=["POST"]),
            Route("/order/certificate/{order_id}", self.asking(self._status), methods=["GET"]),
            Route("/certificate/{order_id}/download/format/pem_all", self.plain(self._download), methods=["GET"]),
            Route("/certificate/{serial}/revoke", self.plain(self._revoke), methods=["PUT"]),
        ]

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """403 without the key."""
        if headers.get("x-dc-devkey") == KEY:
            return None
        return JSONResponse({"errors": [{"code": "access_denied", "message": "wrong key"}]}, 403)

    def environment(self) -> dict[str, str]:
        """The key and an organisation."""
        return {"CERTCTL_DIGICERT_API_KEY": KEY, "CERTCTL_DIGICERT_ORG_ID": "42"}

    async def _order(self, asked: Asked) -> Response:
        order = self.book(asked.body["certificate"]["csr"])
        return JSONResponse({"id": int(order.id), "requests": [{"id": 1, "status": "pending"}]}, 201)

    async def _status(self, asked: Asked) -> Response:
        order = self.ask(asked.path["order_id"])
        if order is None:
            return JSONResponse({"errors": [{"code": "not_found", "message": "no such order"}]}, 404)
        word = self.word(order, "issued", "pending", "rejected")
        certificate = {"id": int(order.id)} if word == "issued" and self.certificate(order) else {}
        return JSONResponse({"id": int(order.id), "status": word, "certificate": certificate})

    async def _download(self, asked: Asked) -> Response:
        order = self.orders.get(asked.path["order_id"])
        if order is None or not order.certificate:
            return JSONResponse({"errors": [{"code": "not_found", "message": "no such certificate"}]}, 404)
        return PlainTextResponse(self.certificate(order) + self.chain() + self.root.pem)

    async def _revoke(self, asked: Asked) -> Response:
        order = self.by_serial(asked.path["serial"])
        if order is None:
            return JSONResponse({"errors": [{"code": "not_found", "message": "no such certificate"}]}, 404)
        order.state = REVOKED
        return JSONResponse({"id": 1, "type": "revoke", "status": "submitted"}, 201)
