"""What every connector can do. None of these calls waits: each is one or two requests of at most 30 s."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from perdure_systems.authorities.failures import OutcomeUnknown, Refused, Unreachable
from perdure_systems.authorities.wire import Answer, Wire

_GATEWAY_ERRORS: Final = {502, 504}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is ordered. `reference` is our own name for it, which goes along with every request."""

    csr: str
    names: tuple[str, ...]
    reference: str


class Placed(msgspec.Struct, frozen=True):
    """An order that the authority has taken, under its own id."""

    id: str


class Reason(StrEnum):
    """Why a certificate is revoked (RFC 5280)."""

    UNSPECIFIED = "unspecified"
    KEY_COMPROMISE = "keyCompromise"
    AFFILIATION_CHANGED = "affiliationChanged"
    SUPERSEDED = "superseded"
    CESSATION_OF_OPERATION = "cessationOfOperation"
    PRIVILEGE_WITHDRAWN = "privilegeWithdrawn"


class Connector(Protocol):
    """An authority that issues certificates when it is ready to."""

    async def place(self, order: Order) -> Placed:
        """Order a certificate; the authority's order id comes back at once (D1)."""

    async def collect(self, order_id: str, reference: str) -> str:
        """The PEM text of the certificate and its chain; raises `Pending`, `Rejected` or an error (D3)."""

    async def revoke(self, order_id: str, serial: str, reason: Reason, reference: str) -> None:
        """Revoke a certificate; doing so twice does no harm."""


async def placed(wire: Wire, path: str, body: object, reference: str) -> Answer:
    """POST an order. A lost response is `OutcomeUnknown`: a retry might get a second certificate."""
    try:
        return await wire.call("POST", path, body, reference=reference, is_fresh=True)
    except Unreachable as error:
        if not error.was_sent:
            raise
        raise OutcomeUnknown(_unknown(wire.who, reference, str(error))) from None
    except Refused as error:
        if error.response.status_code not in _GATEWAY_ERRORS:
            raise
        raise OutcomeUnknown(_unknown(wire.who, reference, str(error))) from None


def segment(text: str) -> str:
    """A text that came from outside, as one segment of a path."""
    return quote(text, safe="")


def _unknown(who: str, reference: str, why: str) -> str:
    return (
        f"{who} may have taken the order {reference} although its answer was lost ({why})."
        f" Look for it at {who} first; a requeue of this job places the order again"
    )
