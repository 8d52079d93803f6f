"""One HTTP/1.1 request and its answer over a connection that is used once.

The answer is read up to a limit; a longer body is cut, and the connection closed. Nothing of the answer is
interpreted but its status, its length and Retry-After: no redirects, no cookies, no compression.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from perdure.policy.outbound.target import Target
from perdure.signals.webhooks.errors import SendRefused

HEAD_LIMIT_BYTES: Final = 32 * 1024
_HEAD_LIMIT_LINES: Final = 200
_INTERIM_ANSWERS_LIMIT: Final = 5  # answers such as 103 Early Hints before the real one
_OWN: Final = frozenset({"host", "content-length", "connection", "transfer-encoding", "expect", "upgrade", "te"})
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: [^\r\n]*)?")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;.*)?")
_NO_BODY: Final = frozenset({204, 304})


class BadAnswer(Exception):  # noqa: N818 - reads as what it is
    """The answer is not HTTP, or is incomplete."""


class Head(Struct, frozen=True):
    """The beginning of an answer. Names of headers are in lower case; the first of several with one name counts."""

    status: int
    headers: dict[str, str]


def request(target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    """The request as it goes over the wire; raises `SendRefused` for headers that would change its meaning."""
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.authority}"]
    for name, value in headers.items():
        if name.lower() in _OWN:
            raise SendRefused(f"header {name} is set by the sender: leave it out")
        if not _TOKEN.fullmatch(name):
            raise SendRefused(f"header {name[:50]!r} has a character that no header name may have")
        if not value.isascii() or not value.isprintable():
            raise SendRefused(f"header {name} must be printable ASCII")
        lines.append(f"{name}: {value}")
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii") + body


async def read_answer(reader: asyncio.StreamReader, most: int) -> tuple[Head, bytes]:
    """The answer: its head, and at most `most` bytes of its body; raises `BadAnswer`."""
    try:
        for _ in range(_INTERIM_ANSWERS_LIMIT):
            head = await _read_head(reader)
            if head.status >= 200:  # noqa: PLR2004 - 1xx announces the real answer
                return head, await _read_body(reader, head, most)
    except asyncio.IncompleteReadError as error:
        raise BadAnswer("closed the connection before the end of its answer") from error
    except asyncio.LimitOverrunError as error:
        raise BadAnswer(f"sent a line of more than {HEAD_LIMIT_BYTES:,} bytes") from error
    raise BadAnswer(f"sent {_INTERIM_ANSWERS_LIMIT} interim answers and no real one")


async def _read_head(reader: asyncio.StreamReader) -> Head:
    first = await reader.readuntil(b"\r\n")
    found = _STATUS_LINE.fullmatch(first[:-2])
    if found is None:
        raise BadAnswer(f"does not speak HTTP/1.1: {first[:50]!r}")
    headers: dict[str, str] = {}
    size = 0
    for _ in range(_HEAD_LIMIT_LINES):
        line = await reader.readuntil(b"\r\n")
        if line == b"\r\n":
            return Head(int(found[1]), headers)
        size += len(line)
        if size > HEAD_LIMIT_BYTES:
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    raise BadAnswer(f"sent more than {HEAD_LIMIT_BYTES:,} bytes or {_HEAD_LIMIT_LINES} lines of headers")


async def _read_body(reader: asyncio.StreamReader, head: Head, most: int) -> bytes:
    if head.status in _NO_BODY:
        return b""
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader, most)
    length = head.headers.get("content-length")
    if length is None:
        return await _read_until_closed(reader, most)
    if not (length.isascii() and length.isdigit() and len(length) <= 18):  # noqa: PLR2004 - as many as a 64 bit number
        raise BadAnswer(f"sent an unreadable Content-Length: {length[:50]!r}")
    return await reader.readexactly(min(int(length), most))


async def _read_chunks(reader: asyncio.StreamReader, most: int) -> bytes:
    body = bytearray()
    while len(body) < most:
        line = (await reader.readuntil(b"\r\n"))[:-2]
        found = _SIZE.fullmatch(line)
        if found is None:
            raise BadAnswer(f"sent an unreadable chunk: {line[:50]!r}")
        size = int(found[1], 16)
        if size == 0:
            break
        body += await reader.readexactly(min(size, most - len(body)))
        if len(body) < most:
            await reader.readexactly(2)
    return bytes(body)


async def _read_until_closed(reader: asyncio.StreamReader, most: int) -> bytes:
    body = bytearray()
    while len(body) < most and (more := await reader.read(most - len(body))):
        body += more
    return bytes(body)
