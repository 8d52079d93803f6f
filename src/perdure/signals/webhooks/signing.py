"""The signature of a request: HMAC-SHA256 over `timestamp.body`.

Neither can be changed without the secret, and a request that was overheard cannot be sent again later. Each attempt is
signed with its own time.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from perdure.clock import SystemClock
from perdure.domain.duration import Duration, parse_duration
from perdure.errors import ArgumentError
from perdure.policy.secrets.secret import Secret
from perdure.signals.webhooks.errors import SignatureRefused

TOLERANCE: Final = "5m"
ID_HEADER: Final = "X-Webhook-ID"
ATTEMPT_HEADER: Final = "X-Webhook-Attempt"
MAX_ATTEMPTS_HEADER: Final = "X-Webhook-Max-Attempts"
TIMESTAMP_HEADER: Final = "X-Webhook-Timestamp"
SIGNATURE_HEADER: Final = "X-Webhook-Signature"

_TIMESTAMP_LIMIT_DIGITS: Final = 15

SecretText = str | Secret[str]


def signature(secret: SecretText, timestamp: int, body: bytes) -> str:
    """The value of the signature header."""
    signed = str(timestamp).encode() + b"." + body
    return f"sha256={hmac.new(_key(secret), signed, hashlib.sha256).hexdigest()}"


def signed_headers(secret: SecretText, body: bytes, sent_at: datetime) -> dict[str, str]:
    """The two headers that prove where a request comes from, and when."""
    timestamp = int(sent_at.timestamp())
    return {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: signature(secret, timestamp, body)}


def delivery_headers(delivery_id: str, attempt: int, attempts: int | None) -> dict[str, str]:
    """Which delivery this is. The id stays the same on every attempt, so that a receiver can drop a second one."""
    headers = {ID_HEADER: delivery_id, ATTEMPT_HEADER: str(attempt)}
    return headers if attempts is None else {**headers, MAX_ATTEMPTS_HEADER: str(attempts)}


def verify(
    secret: SecretText | Sequence[SecretText],
    headers: Mapping[str, str],
    body: bytes,
    tolerance: Duration = TOLERANCE,
    *,
    now: datetime | None = None,
) -> None:
    """Accept a request that was signed with the secret at most `tolerance` ago; raise `SignatureRefused` otherwise.

    `secret` may be a list: while a secret is replaced, give the new one and the old one. `body` is the body as it was
    received, before any decoding. `headers` is any mapping; upper and lower case are the same. The comparison takes the
    same time for every wrong signature.
    """
    given = {str(name).lower(): str(value) for name, value in headers.items()}
    stamp = given.get(TIMESTAMP_HEADER.lower(), "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= _TIMESTAMP_LIMIT_DIGITS):
        raise SignatureRefused(f"{TIMESTAMP_HEADER} must be seconds since 1970, got {stamp[:50]!r}")
    longest = parse_duration("tolerance", tolerance).total_seconds()
    age = (now or SystemClock().now()).timestamp() - int(stamp)
    if abs(age) > longest:
        raise SignatureRefused(
            f"{TIMESTAMP_HEADER} is {age:.0f} s away from now, more than {longest:g} s: check both clocks"
        )
    claimed = given.get(SIGNATURE_HEADER.lower(), "").encode("utf-8", "replace")
    secrets: Sequence[SecretText] = (secret,) if isinstance(secret, str | Secret) else secret
    matches = [hmac.compare_digest(signature(one, int(stamp), body).encode(), claimed) for one in secrets]
    if not any(matches):
        raise SignatureRefused(f"{SIGNATURE_HEADER} does not match the body: check the secret")


def _key(secret: SecretText) -> bytes:
    key = (secret.reveal() if isinstance(secret, Secret) else secret).encode()
    if not key:
        raise ArgumentError("secret", "must not be empty: an empty secret protects nothing")
    return key
