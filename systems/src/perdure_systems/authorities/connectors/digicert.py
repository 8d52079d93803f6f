"""DigiCert CertCentral (D6): an API key in `X-DC-DEVKEY`; an order leads to a certificate id, which is downloaded."""

from __future__ import annotations

from typing import Final

import msgspec

from perdure_systems.authorities.chains import require_certificate
from perdure_systems.authorities.connectors.connector import Order, Placed, Reason, placed, segment
from perdure_systems.authorities.failures import CertificateMissing
from perdure_systems.authorities.triage import words
from perdure_systems.authorities.wire import Wire

WORDS: Final = words("issued", "pending, processing", "rejected, denied")


class _Ordered(msgspec.Struct, frozen=True):
    id: int | str


class _Certificate(msgspec.Struct, frozen=True):
    id: int | str | None = None


class _Status(msgspec.Struct, frozen=True):
    status: str
    certificate: _Certificate = _Certificate()


class DigiCert:
    """Orders at DigiCert."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def place(self, order: Order) -> Placed:
        """POST /order/certificate/{type}."""
        settings = self._wire.settings
        body = {
            "certificate": {
                "common_name": order.names[0],
                "dns_names": order.names,
                "csr": order.csr,
                "signature_hash": "sha256",
            },
            "organization": {"id": settings.option("organization")},
            "order_validity": {"years": 1},
            "comments": order.reference,
        }
        path = f"/order/certificate/{segment(settings.option('product'))}"
        return Placed(str((await placed(self._wire, path, body, order.reference)).read(_Ordered).id))

    async def collect(self, order_id: str, reference: str) -> str:
        """GET /order/certificate/{id}, then GET /certificate/{cid}/download/format/pem_all."""
        path = f"/order/certificate/{segment(order_id)}"
        status = (await self._wire.call("GET", path, reference=reference)).read(_Status)
        WORDS.require_issued(self._wire.who, order_id, status.status)
        if status.certificate.id is None:
            raise CertificateMissing(f"DigiCert says that order {order_id} is issued, and names no certificate")
        path = f"/certificate/{segment(str(status.certificate.id))}/download/format/pem_all"
        answer = await self._wire.call("GET", path, reference=reference)
        return require_certificate(self._wire.who, order_id, answer.text())

    async def revoke(self, order_id: str, serial: str, reason: Reason, reference: str) -> None:
        """PUT /certificate/{serial}/revoke."""
        del order_id
        path = f"/certificate/{segment(serial)}/revoke"
        await self._wire.call("PUT", path, {"comments": f"{reference}: {reason}"}, reference=reference)
