"""GlobalSign Atlas (D9): mutual TLS, key and secret; a certificate is known by its serial number from the start."""

from __future__ import annotations

from typing import Final

import msgspec

from perdure_systems.authorities.chains import require_certificate
from perdure_systems.authorities.connectors.connector import Order, Placed, Reason, placed, segment
from perdure_systems.authorities.triage import words
from perdure_systems.authorities.wire import Wire

WORDS: Final = words("issued", "pending, processing", "rejected, denied, failed")


class _Ordered(msgspec.Struct, frozen=True):
    serial_number: str


class _Certificate(msgspec.Struct, frozen=True):
    status: str
    certificate: str | None = None
    chain: str | None = None


class GlobalSign:
    """Certificates of GlobalSign."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def place(self, order: Order) -> Placed:
        """POST /v2/certificates."""
        body = {
            "csr": order.csr,
            "subject_dn": {"common_name": order.names[0]},
            "san": {"dns_names": order.names},
        }
        answer = await placed(self._wire, "/v2/certificates", body, order.reference)
        return Placed(answer.read(_Ordered).serial_number)

    async def collect(self, order_id: str, reference: str) -> str:
        """GET /v2/certificates/{serial}."""
        path = f"/v2/certificates/{segment(order_id)}"
        found = (await self._wire.call("GET", path, reference=reference)).read(_Certificate)
        WORDS.require_issued(self._wire.who, order_id, found.status)
        certificate = require_certificate(self._wire.who, order_id, found.certificate or "")
        return f"{certificate.strip()}\n{found.chain or ''}"

    async def revoke(self, order_id: str, serial: str, reason: Reason, reference: str) -> None:
        """PUT /v2/certificates/{serial}/revoke, which takes no reason."""
        del serial, reason
        await self._wire.call("PUT", f"/v2/certificates/{segment(order_id)}/revoke", reference=reference)
