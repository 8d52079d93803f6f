"""CSRF values: a form must send one back, to prove that a page of the desk made it.

It is derived from a secret that other sites do not know: the secret of the session; for callers without one,
a key that all processes on this database share; for the login page, that key and a cookie.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.requests.visit import Visit

FIELD = "_csrf"
HEADER = "x-csrf-token"
_FORM = "application/x-www-form-urlencoded"
_FORM_LIMIT_FIELDS = 1_000

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


def csrf_of(secret: str, purpose: str) -> str:
    """The CSRF value of a secret; it does not reveal the secret."""
    return hmac.new(secret.encode(), f"perdure csrf {purpose}".encode(), hashlib.sha256).hexdigest()


def matches(given: str | None, expected: str) -> bool:
    """Whether it is the right value, compared in constant time."""
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())


async def require_csrf(visit: Visit, receive: Receive, expected: str) -> Receive:
    """Raise Refused (403) unless header or form has the value; returns a `receive` that gives the body again."""
    given = visit.headers.get(HEADER)
    if given is None and is_form(visit):
        body = await read_body(receive)
        given, receive = form_fields(body).get(FIELD), replay(body, receive)
    if not matches(given, expected):
        raise Refused(
            403,
            "Forbidden",
            f"The request has no CSRF value ({HEADER} or the form field {FIELD}): "
            "reload the page and retry. Programs send a token: Authorization: Bearer pdr_…",
        )
    return receive


def is_form(visit: Visit) -> bool:
    """Whether the body is a form."""
    return visit.headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM


async def read_body(receive: Receive) -> bytes:
    """The whole body; its size is limited by what `receive` allows."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the client has disconnected
            return b""
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def form_fields(body: bytes) -> dict[str, str]:
    """The fields of a form; the last one of several with the same name."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FORM_LIMIT_FIELDS))
    except ValueError:
        raise Refused(400, "Bad Request", "The form cannot be read.") from None


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives this body, then the messages after it."""
    rest = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return rest.pop() if rest else await receive()

    return again
