"""Requests to an authority: TLS with its server verified, our client certificate where it is asked for, 30 s in all.

A request that ends without a usable answer raises `Refused` or `Unreachable`. What they say holds the method, the path
and a piece of the answer, and every secret that we send is cut out of it, because an authority may repeat our key in
an error.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import msgspec
import structlog

from perdure import SettingsError
from perdure_systems.authorities.failures import Refused, Response, Unreachable, Unreadable
from perdure_systems.authorities.settings import Authority, AuthoritySettings

T = TypeVar("T")
REQUEST_TIMEOUT_SECONDS: Final = 30.0
ANSWER_LIMIT_BYTES: Final = 1_000_000
_REFUSAL_LIMIT_CHARACTERS: Final = 200
_LIMITS: Final = httpx.Limits(max_connections=50, keepalive_expiry=2.0)  # servers often close after 5 s: be first
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)

log = structlog.get_logger("perdure_systems.authorities")


class Answer(msgspec.Struct, frozen=True):
    """A 2xx answer of an authority."""

    who: str
    what: str
    body: bytes

    def read(self, as_type: type[T]) -> T:
        """The JSON body as this type; anything else is `Unreadable` (D3)."""
        try:
            return msgspec.json.decode(self.body, type=as_type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"{self.who} answered {self.what} with a body that cannot be read: {error}") from None

    def text(self) -> str:
        """The body as text; anything else is `Unreadable`."""
        try:
            return self.body.decode()
        except UnicodeDecodeError:
            raise Unreadable(f"{self.who} answered {self.what} with a body that is no text") from None


class Wire:
    """The way to one authority. Connections are kept open between requests."""

    def __init__(self, settings: AuthoritySettings, *, timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:
        self.settings = settings
        self.who = settings.authority.title
        self._timeout = timeout
        self._secrets = [secret.reveal() for _, secret in settings.headers]
        self._tls = _tls(settings)
        self._client = self._new_client()

    async def call(
        self, method: str, path: str, body: Any = None, *, reference: str = "", is_fresh: bool = False
    ) -> Answer:
        """Send a request; the answer if it is 2xx, else `Refused` or `Unreachable`.

        `is_fresh` takes a connection of its own. One that was kept open may just be closed by the authority, and then
        it is unknown whether it has read the request.
        """
        what = f"{method} {path}"
        headers = {"X-Request-ID": reference} if reference else {}
        content = None
        if body is not None:
            content, headers["Content-Type"] = msgspec.json.encode(body), "application/json"
        client = self._new_client() if is_fresh else self._client
        request = client.build_request(method, path, headers=headers, content=content)
        try:
            async with asyncio.timeout(self._timeout):  # httpx limits each read, and a slow drip has many
                status, answered, text = await self._exchange(client, request, what)
        except TimeoutError:
            raise Unreachable(self.who, what, f"{self._timeout:g} s are over", was_sent=True) from None
        except (httpx.TransportError, OSError) as error:
            why = self._redacted(f"{type(error).__name__}: {error}")
            raise Unreachable(self.who, what, why, was_sent=_may_be_sent(error)) from None
        finally:
            if is_fresh:
                await client.aclose()
        log.info("authority answered", authority=self.settings.authority.value, request=what, status=status)
        if not 200 <= status < 300:  # noqa: PLR2004 - 2xx
            said = " ".join(text[: 10 * _REFUSAL_LIMIT_CHARACTERS].decode("utf-8", "replace").split())
            raise Refused(
                self.who, what, Response(status, answered), self._redacted(said)[:_REFUSAL_LIMIT_CHARACTERS], body=text
            )
        return Answer(self.who, what, text)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def _new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.settings.url,
            verify=self._tls,
            headers={name: secret.reveal() for name, secret in self.settings.headers},
            timeout=self._timeout,
            limits=_LIMITS,
            trust_env=False,  # a proxy of the environment would see our keys
        )

    async def _exchange(
        self, client: httpx.AsyncClient, request: httpx.Request, what: str
    ) -> tuple[int, dict[str, str], bytes]:
        response = await client.send(request, stream=True)
        try:
            text = b""
            async for piece in response.aiter_bytes():
                text += piece
                if len(text) > ANSWER_LIMIT_BYTES:
                    raise Unreadable(f"{self.who} answered {what} with more than {ANSWER_LIMIT_BYTES:,} bytes")
        except httpx.DecodingError as error:
            raise Unreadable(f"{self.who} answered {what} with a body that cannot be decoded: {error}") from None
        finally:
            await response.aclose()
        return response.status_code, dict(response.headers), text

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class Wires:
    """The wires of a process, one for each authority, made when first needed.

    A wire is replaced when the settings or one of the PEM files have changed: a rotated client certificate is used from
    the next request on.
    """

    def __init__(self) -> None:
        self._open: dict[Authority, tuple[object, Wire]] = {}
        self._retired: list[Wire] = []

    def to(self, settings: AuthoritySettings) -> Wire:
        """The wire for these settings."""
        state = (settings, _versions(settings), asyncio.get_running_loop())
        known = self._open.get(settings.authority)
        if known is not None and known[0] == state:
            return known[1]
        if known is not None:
            self._retired.append(known[1])  # a request may still be under way on it
        wire = Wire(settings)
        self._open[settings.authority] = (state, wire)
        return wire

    async def close(self) -> None:
        """Close all wires; the next request opens its own again."""
        wires = [wire for _, wire in self._open.values()] + self._retired
        self._open, self._retired = {}, []
        for wire in wires:
            await wire.close()


WIRES: Final = Wires()


def _tls(settings: AuthoritySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.server_roots)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.client_certificate is not None:
            context.load_cert_chain(settings.client_certificate, settings.client_key)
    except (OSError, ssl.SSLError) as error:
        prefix = f"CERTCTL_{settings.authority.name}"
        names = f"{prefix}_CLIENT_CERT_PATH, {prefix}_CLIENT_KEY_PATH or {prefix}_SERVER_CA_PATH"
        raise SettingsError(names, f"cannot be used for TLS: {error}") from None
    return context


def _versions(settings: AuthoritySettings) -> tuple[int, ...]:
    return tuple(path.stat().st_mtime_ns for path in _files(settings) if path.exists())


def _files(settings: AuthoritySettings) -> Iterator[Path]:
    for path in (settings.client_certificate, settings.client_key, settings.server_roots):
        if path is not None:
            yield path


def _may_be_sent(error: BaseException) -> bool:
    """Whether the authority may have read the request. One that refuses our certificate has read nothing."""
    if isinstance(error, _NOT_SENT):
        return False
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ssl.SSLError):
            return False
        link = link.__cause__ or link.__context__
    return True
