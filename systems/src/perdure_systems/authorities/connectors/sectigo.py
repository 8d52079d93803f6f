"""Sectigo Certificate Manager (D7): three headers; issued first, collected when it is ready, which may be later."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from perdure import Pending
from perdure_systems.authorities.chains import require_certificate
from perdure_systems.authorities.connectors.connector import Order, Placed, Reason, placed, segment
from perdure_systems.authorities.failures import Refused
from perdure_systems.authorities.triage import words
from perdure_systems.authorities.wire import Wire

WORDS: Final = words("Issued", "Applied, Pending", "Rejected, Revoked, Expired, Not Enrolled")
NOT_READY: Final = -183


class _Enrolled(msgspec.Struct, frozen=True, rename="camel"):
    ssl_id: int | str


class _Status(msgspec.Struct, frozen=True):
    status: str


class _Problem(msgspec.Struct, frozen=True):
    code: int = 0


class Sectigo:
    """Orders at Sectigo."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def place(self, order: Order) -> Placed:
        """POST /ssl/v1/enroll."""
        settings = self._wire.settings
        body = {
            "orgId": int(settings.option("organization")),
            "certType": int(settings.option("type")),
            "term": int(settings.option("term")),
            "csr": order.csr,
            "subjAltNames": ",".join(order.names),
            "comments": order.reference,
        }
        return Placed(str((await placed(self._wire, "/ssl/v1/enroll", body, order.reference)).read(_Enrolled).ssl_id))

    async def collect(self, order_id: str, reference: str) -> str:
        """GET /ssl/v1/{sslId}, then GET /ssl/v1/collect/{sslId}/pem, where 400 with code -183 means not ready."""
        ssl_id = segment(order_id)
        status = (await self._wire.call("GET", f"/ssl/v1/{ssl_id}", reference=reference)).read(_Status)
        WORDS.require_issued(self._wire.who, order_id, status.status)
        try:
            answer = await self._wire.call("GET", f"/ssl/v1/collect/{ssl_id}/pem", reference=reference)
        except Refused as refused:
            if _is_not_ready(refused):
                raise Pending(
                    message=f"order {order_id} is issued at Sectigo and not ready to collect (-183)"
                ) from None
            raise
        return require_certificate(self._wire.who, order_id, answer.text())

    async def revoke(self, order_id: str, serial: str, reason: Reason, reference: str) -> None:
        """POST /ssl/v1/revoke/{sslId}."""
        del serial
        path = f"/ssl/v1/revoke/{segment(order_id)}"
        await self._wire.call("POST", path, {"reason": str(reason)}, reference=reference)


def _is_not_ready(refused: Refused) -> bool:
    if refused.response.status_code != HTTPStatus.BAD_REQUEST:
        return False
    try:
        return msgspec.json.decode(refused.body, type=_Problem).code == NOT_READY
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
