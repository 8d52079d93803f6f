"""A stand-in for Entrust. Its server asks every client for a certificate, and talks to none without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import REVOKED, Asked, StandIn

CA: Final = "stand-in-ca"
_BASE: Final = f"/v1/certificate-authorities/{CA}"


class EntrustStandIn(StandIn):
    """Mutual TLS is all that it asks for; new enrollments await approval."""

    authority = Authority.ENTRUST
    is_mutual = True

    def routes(self) -> list[Route]:
        """As Entrust has them."""
        return [
            Route(f"{_BASE}/enrollments", self.placing(self._enroll), methods=["POST"]),
            Route(f"{_BASE}/enrollments/{{tracking_id}}", self.asking(self._status), methods=["GET"]),
            Route(f"{_BASE}/certificates/{{serial}}/revoke", self.plain(self._revoke), methods=["PUT"]),
        ]

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """Never: TLS has let the client in."""
        del headers
        return None

    def environment(self) -> dict[str, str]:
        """Which authority of the gateway signs."""
        return {"CERTCTL_ENTRUST_CA_ID": CA}

    def order_id(self, number: int) -> str:
        """A tracking id."""
        return f"trk-{number}"

    async def _enroll(self, asked: Asked) -> Response:
        return JSONResponse({"trackingId": self.book(asked.body["csr"]).id, "status": "AWAITING_APPROVAL"}, 201)

    async def _status(self, asked: Asked) -> Response:
        order = self.ask(asked.path["tracking_id"])
        if order is None:
            return JSONResponse({"error": {"message": "no such enrollment"}}, 404)
        word = self.word(order, "ISSUED", "AWAITING_APPROVAL", "REJECTED")
        found = {"certificate": self.certificate(order), "chain": self.chain()} if word == "ISSUED" else {}
        return JSONResponse({"trackingId": order.id, "status": word, **found})

    async def _revoke(self, asked: Asked) -> Response:
        order = self.by_serial(asked.path["serial"])
        if order is None:
            return JSONResponse({"error": {"message": "no such certificate"}}, 404)
        order.state = REVOKED
        return Response(status_code=204)
