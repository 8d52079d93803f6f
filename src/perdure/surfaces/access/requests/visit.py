"""One request as the checks see it: client address, host, path and headers.

X-Forwarded headers are trusted only from declared proxies. From other addresses they are ignored, but they reveal a
proxy: such a caller does not count as local.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from ipaddress import ip_network
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from starlette.datastructures import Headers

from perdure.surfaces.access.requests.authority import Authority, is_loopback, read_address, read_authority
from perdure.surfaces.access.settings import UNIX, AccessSettings

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_FORWARDING: Final = ("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "via")
_UNQUOTED: Final = "/!$&'()*+,;=:@"
_PRINTABLE: Final = re.compile(r"[!-~]*")
_HTTP_OF_PROXIES: Final = "1.0"  # nginx speaks HTTP/1.0 to servers behind it by default


class Visit(Struct, frozen=True, kw_only=True):
    """A request. `path` is without the prefix under which the desk is mounted; `authority` None: no valid Host."""

    method: str
    prefix: str
    path: str
    query: str
    headers: Headers
    authority: Authority | None
    address: str | None
    is_https: bool
    is_local: bool

    @property
    def is_api(self) -> bool:
        """Whether it is for programs, not for a page: the API, or the metrics."""
        return self.path in {"/api", "/metrics"} or self.path.startswith("/api/")

    @property
    def is_mcp(self) -> bool:
        """Whether it is for the server for agents."""
        return self.path == "/mcp" or self.path.startswith("/mcp/")

    @property
    def is_of_program(self) -> bool:
        """Whether a program sends it, which cannot use a page as a response."""
        return self.is_api or self.is_mcp

    @property
    def is_safe(self) -> bool:
        """Whether its method changes nothing."""
        return self.method in SAFE_METHODS

    @property
    def wants_page(self) -> bool:
        """Whether its sender accepts HTML."""
        return "text/html" in self.headers.get("accept", "")

    @property
    def is_fragment(self) -> bool:
        """Whether it comes from a script of the desk that puts the answer into a page."""
        return "hx-request" in self.headers

    @property
    def url(self) -> str:
        """Path and query, with the prefix, as a browser asks for it; always a place of the desk.

        A URL that begins with two slashes would name another host.
        """
        path = quote("/" + self.path.lstrip("/"), safe=_UNQUOTED)
        return f"{self.prefix}{path}{f'?{self.query}' if self.query else ''}"

    @property
    def home(self) -> str:
        """The first page of the desk."""
        return self.at("/")

    def at(self, path: str) -> str:
        """The URL of a path of the desk."""
        return f"{self.prefix}{path}"

    @property
    def source(self) -> str:
        """Surface and address, for the audit trail."""
        surface = "api" if self.is_api else "mcp" if self.is_mcp else "desk"
        return f"{surface} {self.address or UNIX}"


def read_visit(scope: MutableMapping[str, Any], settings: AccessSettings) -> Visit:
    """What an ASGI scope says."""
    headers = Headers(scope=scope)
    client = scope.get("client")
    peer = str(client[0]) if client and client[0] else None
    by_proxy = _is_proxy(peer, settings)
    prefix, path = _split_path(scope)
    hosts = headers.getlist("x-forwarded-host") if by_proxy else []
    hosts = hosts or headers.getlist("host")
    query = scope.get("query_string", b"").decode("latin-1")
    return Visit(
        method=scope["method"].upper(),
        prefix=prefix,
        path=path,
        query=query if _PRINTABLE.fullmatch(query) else "",
        headers=headers,
        authority=read_authority(hosts[0]) if len(hosts) == 1 else None,
        address=_client_address(peer, headers, settings) if by_proxy else peer,
        is_https=scope.get("scheme") == "https" or (by_proxy and _last(headers, "x-forwarded-proto") == "https"),
        is_local=peer is not None and is_loopback(peer) and not _passed_a_proxy(scope, headers),
    )


def _split_path(scope: MutableMapping[str, Any]) -> tuple[str, str]:
    """The prefix, and the rest of the path; the server may have removed the prefix already."""
    prefix = scope.get("root_path", "").rstrip("/")
    path = scope["path"] or "/"
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        path = path[len(prefix) :] or "/"
    return prefix, path


def _passed_a_proxy(scope: MutableMapping[str, Any], headers: Headers) -> bool:
    return scope.get("http_version") == _HTTP_OF_PROXIES or any(name in headers for name in _FORWARDING)


def _is_proxy(peer: str | None, settings: AccessSettings) -> bool:
    if peer is None:
        return UNIX in settings.proxies
    address = read_address(peer)
    networks = (ip_network(name, strict=False) for name in settings.proxies if name != UNIX)
    return address is not None and any(address in network for network in networks)


def _client_address(peer: str | None, headers: Headers, settings: AccessSettings) -> str | None:
    """The address nearest to us that is no proxy: entries left of it may be forged."""
    named = [part.strip() for value in headers.getlist("x-forwarded-for") for part in value.split(",")]
    for text in reversed(named):
        if read_address(text) is None:
            return peer
        if not _is_proxy(text, settings):
            return text
    return peer


def _last(headers: Headers, name: str) -> str:
    values = headers.getlist(name)
    return values[-1].rpartition(",")[2].strip().lower() if values else ""
