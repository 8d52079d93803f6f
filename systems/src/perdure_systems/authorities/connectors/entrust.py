"""Entrust CA Gateway (D8): mutual TLS is the whole proof of who we are; enrollments may wait for an approval."""

from __future__ import annotations

from typing import Final

import msgspec

from perdure_systems.authorities.chains import require_certificate
from perdure_systems.authorities.connectors.connector import Order, Placed, Reason, placed, segment
from perdure_systems.authorities.triage import words
from perdure_systems.authorities.wire import Wire

WORDS: Final = words("ISSUED", "PENDING, PROCESSING, AWAITING_APPROVAL", "REJECTED, DENIED, FAILED")


class _Enrolled(msgspec.Struct, frozen=True, rename="camel"):
    tracking_id: int | str


class _Enrollment(msgspec.Struct, frozen=True):
    status: str
    certificate: str | None = None
    chain: str | None = None


class Entrust:
    """Enrollments at Entrust."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._base = f"/v1/certificate-authorities/{segment(wire.settings.option('ca'))}"

    async def place(self, order: Order) -> Placed:
        """POST /v1/certificate-authorities/{ca}/enrollments."""
        profile = self._wire.settings.option("profile")
        body = {
            "csr": order.csr,
            "subjectAltNames": [{"type": "dNSName", "value": name} for name in order.names],
            **({"profileId": profile} if profile else {}),
        }
        answer = await placed(self._wire, f"{self._base}/enrollments", body, order.reference)
        return Placed(str(answer.read(_Enrolled).tracking_id))

    async def collect(self, order_id: str, reference: str) -> str:
        """GET /v1/certificate-authorities/{ca}/enrollments/{trackingId}."""
        path = f"{self._base}/enrollments/{segment(order_id)}"
        enrollment = (await self._wire.call("GET", path, reference=reference)).read(_Enrollment)
        WORDS.require_issued(self._wire.who, order_id, enrollment.status)
        certificate = require_certificate(self._wire.who, order_id, enrollment.certificate or "")
        return f"{certificate.strip()}\n{enrollment.chain or ''}"

    async def revoke(self, order_id: str, serial: str, reason: Reason, reference: str) -> None:
        """PUT /v1/certificate-authorities/{ca}/certificates/{serial}/revoke."""
        del order_id
        body = {"revocationReason": f"{reason[0].upper()}{reason[1:]}"}
        await self._wire.call("PUT", f"{self._base}/certificates/{segment(serial)}/revoke", body, reference=reference)
