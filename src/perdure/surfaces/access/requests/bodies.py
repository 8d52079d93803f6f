"""A limit on the size of what a caller sends."""

from __future__ import annotations

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.login.csrf import Message, Receive
from perdure.surfaces.access.requests.visit import Visit


def limited(visit: Visit, receive: Receive, most: int) -> Receive:
    """Raise Refused (413) for a body that is too large: at once if its Content-Length says so, else while reading."""
    announced = visit.headers.get("content-length")
    if announced is not None and not (announced.isascii() and announced.isdigit()):
        raise Refused(400, "Bad Request", "Content-Length must be a number.")
    if announced is not None and int(announced) > most:
        raise _too_large(most)
    seen = 0

    async def count() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise _too_large(most)
        return message

    return count


def _too_large(most: int) -> Refused:
    return Refused(413, "Content Too Large", f"The body may have at most {most:,} bytes.", {"Connection": "close"})
