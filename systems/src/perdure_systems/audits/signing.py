"""The signature of a webhook: HMAC-SHA256 over `timestamp.body`, so that neither can be changed or sent again later.

A receiver calls `verify(headers, body, secret, now)`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final

TOLERANCE_SECONDS: Final = 300
ID_HEADER: Final = "X-Webhook-ID"
ATTEMPT_HEADER: Final = "X-Webhook-Attempt"
MAX_ATTEMPTS_HEADER: Final = "X-Webhook-Max-Attempts"
TIMESTAMP_HEADER: Final = "X-Webhook-Timestamp"
SIGNATURE_HEADER: Final = "X-Webhook-Signature"


class SignatureRefused(ValueError):  # noqa: N818 - says what happened
    """The request does not come from the service, was changed, or is too old."""


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the signature header."""
    signed = str(timestamp).encode() + b"." + body
    return f"sha256={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def webhook_headers(
    secret: str, body: bytes, *, webhook_id: str, attempt: int, max_attempts: int, sent_at: datetime
) -> dict[str, str]:
    """All headers of one request. Each attempt is signed with its own time."""
    timestamp = int(sent_at.timestamp())
    return {
        "Content-Type": "application/json",
        ID_HEADER: webhook_id,
        ATTEMPT_HEADER: str(attempt),
        MAX_ATTEMPTS_HEADER: str(max_attempts),
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: signature(secret, timestamp, body),
    }


def verify(
    headers: Mapping[str, str], body: bytes, secret: str, now: datetime, *, tolerance: float = TOLERANCE_SECONDS
) -> None:
    """Accept a request that was signed with the secret within the tolerance; raise `SignatureRefused` otherwise."""
    given = {name.lower(): value for name, value in headers.items()}
    stamp = given.get(TIMESTAMP_HEADER.lower(), "")
    if not (stamp.isascii() and stamp.isdigit()):
        raise SignatureRefused(f"{TIMESTAMP_HEADER} must be seconds since 1970, got {stamp[:50]!r}")
    age = now.timestamp() - int(stamp)
    if abs(age) > tolerance:
        raise SignatureRefused(f"{TIMESTAMP_HEADER} is {age:.0f} s away from now, more than {tolerance:.0f} s")
    expected = signature(secret, int(stamp), body)
    if not hmac.compare_digest(expected.encode(), given.get(SIGNATURE_HEADER.lower(), "").encode()):
        raise SignatureRefused(f"{SIGNATURE_HEADER} does not match the body")
