"""The token of a dry run: a signed plan, so that it can start nothing but that plan.

It holds the action, the filter, the count and the time, and a signature with a secret of the database. So it needs no
row, is valid on this database only, and shows what it confirms. The id of the bulk command is derived from it: a token
starts one command, no matter how often it is sent.
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.errors import ConflictError
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter

VALID_FOR: Final = timedelta(minutes=10)
_SIGNATURE_BYTES: Final = 16
_ID_DIGITS: Final = 12


class Confirmed(Struct, frozen=True, kw_only=True):
    """The plan that a token confirms."""

    action: str
    filter: JobFilter
    params: BulkParams
    jobs: int
    capped: bool
    at: datetime
    nonce: str = ""


def sign(key: str, confirmed: Confirmed) -> str:
    """The token of a dry run; no two are the same."""
    text = msgspec.json.encode(msgspec.structs.replace(confirmed, nonce=secrets.token_hex(4)))
    return urlsafe_b64encode(_signature(key, text) + text).decode().rstrip("=")


def read_token(key: str, token: str, now: datetime) -> Confirmed:
    """The plan of a token; ConflictError if it is of another database, was changed, or is too old."""
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        is_ours = hmac.compare_digest(raw[:_SIGNATURE_BYTES], _signature(key, raw[_SIGNATURE_BYTES:]))
        confirmed = msgspec.json.decode(raw[_SIGNATURE_BYTES:], type=Confirmed) if is_ours else None
    except (binascii.Error, ValueError, TypeError, AttributeError, msgspec.MsgspecError):
        confirmed = None
    if confirmed is None:
        raise ConflictError("this token is not valid here: make the dry run again, and pass its token")
    if not timedelta(0) <= now - confirmed.at + VALID_FOR <= 2 * VALID_FOR:
        raise ConflictError(f"the dry run is older than {format_duration(VALID_FOR)}: make it again, and look at it")
    return confirmed


def bulk_id(token: str) -> str:
    """The id of the bulk command that a token starts."""
    return sha256(token.encode()).hexdigest()[:_ID_DIGITS]


def _signature(key: str, text: bytes) -> bytes:
    return hmac.new(key.encode(), text, sha256).digest()[:_SIGNATURE_BYTES]
