"""Sends one signed request, safely. perdure calls addresses that others name only through this sender.

Before it connects, the sender resolves the name once and checks every address. It connects to one of the checked
addresses; the name stays in the Host header, in TLS and in the check of the certificate. It follows no redirect, uses
no proxy of the environment, reads a limited part of the answer, and ends the whole exchange at the time limit.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import Final

from msgspec import Struct

from perdure.clock import Clock, SystemClock
from perdure.domain.duration import Duration, parse_duration
from perdure.errors import ArgumentError
from perdure.policy.outbound.target import Target, read_target
from perdure.policy.retries.http import retry_after
from perdure.signals.webhooks.addresses import AddressRules, Place, Resolve, resolve
from perdure.signals.webhooks.errors import SendFailed, SendRefused
from perdure.signals.webhooks.exchange import HEAD_LIMIT_BYTES, BadAnswer, Head, read_answer, request
from perdure.signals.webhooks.signing import SecretText, signed_headers
from perdure.version import __version__

TIMEOUT: Final = "30s"
BODY_LIMIT_BYTES: Final = 1024 * 1024
ANSWER_LIMIT_BYTES: Final = 16 * 1024

_REASON_LIMIT_CHARACTERS: Final = 200
_TRY_NEXT_AFTER_SECONDS: Final = 5.0  # before the next address of a name is tried
_PASSING: Final = frozenset({408, 425, 429})  # 4xx that say "later", not "never"
_DEFAULTS: Final = {
    "User-Agent": f"perdure/{__version__}",
    "Content-Type": "application/json",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}


class Answer(Struct, frozen=True, kw_only=True):
    """What a receiver answered, and how long the whole exchange took. A long body is cut."""

    status: int
    body: bytes
    seconds: float


class Sender:
    """Sends requests to receivers that others name.

    `allow_private` is True, or lists networks and host names, for receivers that have no public address. `tls` replaces
    the system's trusted authorities. `resolve` and `clock` are for tests. A sender has no state: share it freely.
    """

    def __init__(
        self,
        *,
        allow_private: bool | Collection[str] = False,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
        clock: Clock | None = None,
    ) -> None:
        self._rules = AddressRules(allow_private)
        self._tls = tls
        self._resolve = resolve
        self._clock = clock or SystemClock()

    async def send(
        self,
        url: str,
        body: bytes,
        *,
        secret: SecretText | None = None,
        headers: Mapping[str, str] | None = None,
        sent_at: datetime | None = None,
        timeout: Duration = TIMEOUT,  # noqa: ASYNC109 - one limit for all of it, as handlers write it
    ) -> Answer:
        """POST `body` to `url` once; return the answer if its status is 2xx.

        With a `secret` the request is signed, with the time `sent_at` (default: the sender's clock). Raises
        `SendRefused` if a retry cannot help: a bad or forbidden address, too large a body, a redirect, 4xx. Raises
        `SendFailed` if one may: the network, TLS, the time limit, an answer that is not HTTP, 408, 425, 429 and 5xx.
        """
        target = _read(url)
        if len(body) > BODY_LIMIT_BYTES:
            raise SendRefused(f"the body must have at most {BODY_LIMIT_BYTES:,} bytes, got {len(body):,}")
        limit = parse_duration("timeout", timeout).total_seconds()
        proof = {} if secret is None else signed_headers(secret, body, sent_at or self._clock.now())
        wire = request(target, _joined(_DEFAULTS, headers or {}, proof), body)
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(limit), self._connected(target) as (reader, writer):
                writer.write(wire)
                head, content = await read_answer(reader, ANSWER_LIMIT_BYTES)
        except TimeoutError:
            raise SendFailed(f"{target.origin} did not answer within {limit:g} s") from None
        except BadAnswer as error:
            raise SendFailed(f"{target.origin} {error}") from None
        except OSError as error:
            raise SendFailed(f"{target.origin} was not reached: {_brief(error)}") from None
        answer = Answer(status=head.status, body=content, seconds=round(self._clock.monotonic() - begun, 3))
        return _judged(target, head, answer)

    async def check(self, url: str) -> None:
        """Resolve and check an address without connecting to it; raises as `send` does."""
        target = _read(url)
        self._rules.check(target, await self._resolve(target.host, target.port))

    @asynccontextmanager
    async def _connected(self, target: Target) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        places = await self._resolve(target.host, target.port)
        self._rules.check(target, places)
        sock = await _connect(places)
        tls = (self._tls or _system_tls()) if target.is_encrypted else None
        name = target.host if target.is_encrypted else None
        try:
            reader, writer = await asyncio.open_connection(
                sock=sock, ssl=tls, server_hostname=name, limit=HEAD_LIMIT_BYTES
            )
        except BaseException:
            sock.close()
            raise
        try:
            yield reader, writer
        finally:
            writer.transport.abort()  # the answer is complete or useless: do not wait for the TLS shutdown
            with suppress(OSError):
                await writer.wait_closed()


def _read(url: str) -> Target:
    try:
        return read_target(url)
    except ArgumentError as error:
        raise SendRefused(str(error)) from None


async def _connect(places: list[Place]) -> socket.socket:
    """A connection to the first of these addresses that accepts one."""
    loop = asyncio.get_running_loop()
    problem: OSError = OSError("no address")
    for number, place in enumerate(places, 1):
        sock = socket.socket(place.family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_TRY_NEXT_AFTER_SECONDS if number < len(places) else None):
                await loop.sock_connect(sock, place.address)
        except TimeoutError:
            sock.close()
            problem = OSError(f"{place.ip} did not accept a connection")
        except OSError as error:
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise problem


def _judged(target: Target, head: Head, answer: Answer) -> Answer:
    if 200 <= answer.status < 300:  # noqa: PLR2004 - what HTTP calls success
        return answer
    text = f"{target.origin} answered {answer.status}"
    if answer.status >= 500 or answer.status in _PASSING:  # noqa: PLR2004 - an error of the receiver
        raise SendFailed(text, answer, retry_after(head.headers))
    if answer.status < 400:  # noqa: PLR2004 - a redirect
        raise SendRefused(f"{text}: redirects are not followed, name the final address", answer)
    raise SendRefused(text, answer)


def _joined(*parts: Mapping[str, str]) -> dict[str, str]:
    """Headers of several sources; a later one replaces an earlier one, in any case of its letters."""
    joined: dict[str, tuple[str, str]] = {}
    for part in parts:
        joined |= {name.lower(): (name, value) for name, value in part.items()}
    return dict(joined.values())


def _brief(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    return " ".join((error.strerror or str(error) or type(error).__name__).split())[:_REASON_LIMIT_CHARACTERS]


@lru_cache(maxsize=1)
def _system_tls() -> ssl.SSLContext:
    """The system's trusted authorities, read once: that takes longer than a request."""
    return ssl.create_default_context()
