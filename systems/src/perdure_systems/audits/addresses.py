"""Which addresses the service may call: pages to audit and receivers of webhooks are named by strangers.

Only http and https, only hosts whose every address is public. The check is made when a request arrives, and again at
each connection, on the address that is connected to: the name may resolve to another address by then. Webhooks are
sent by perdure's own sender, which does the same.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from perdure.webhooks import is_public
from perdure_systems.audits import settings

_PORTS: Final = {"http": 80, "https": 443}
_ADDRESS_LIMIT_CHARACTERS: Final = 2_000


class AddressRefused(ValueError):  # noqa: N818 - says what happened
    """The service must not call this address."""


class AddressUnknown(ConnectionError):  # noqa: N818 - says what happened
    """The name of the host cannot be resolved now."""


def normal_url(url: str) -> str:
    """The one way to write this address: two texts for one page are one page.

    Raises `AddressRefused` if it is no http or https address.
    """
    if len(url) > _ADDRESS_LIMIT_CHARACTERS:
        raise AddressRefused(f"must be at most {_ADDRESS_LIMIT_CHARACTERS:,} characters, got {len(url):,}")
    if any(character.isspace() or not character.isprintable() for character in url.strip()):
        raise AddressRefused(f"must hold no spaces or control characters, got {url[:100]!r}")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        host = (parts.hostname or "").rstrip(".").encode("idna").decode() if parts.hostname else ""
    except (ValueError, UnicodeError) as error:
        raise AddressRefused(f"must be an http or https address, got {url[:100]!r}: {error}") from None
    if parts.scheme.lower() not in _PORTS or not host:
        raise AddressRefused(f"must be an http or https address, got {url[:100]!r}")
    if port == 0:
        raise AddressRefused("must name a port from 1 to 65535, got 0")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("must hold no user name or password")
    netloc = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme.lower()]:
        netloc = f"{netloc}:{port}"
    return urlunsplit(SplitResult(parts.scheme.lower(), netloc, parts.path or "/", parts.query, ""))


async def check_address(url: str) -> str:
    """The normal form of an address that may be called; raises `AddressRefused` or `AddressUnknown`."""
    normal = normal_url(url)
    parts = urlsplit(normal)
    await allowed_ip(parts.hostname or "", parts.port or _PORTS[parts.scheme])
    return normal


async def allowed_ip(host: str, port: int) -> str:
    """An IP address of this host that may be connected to. All of its addresses must be allowed."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise AddressUnknown(f"{host!r} cannot be resolved: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    if not settings.allow_private_addresses():
        for address in addresses:
            if not is_public(address):
                raise AddressRefused(
                    f"{host!r} leads to {address}, which is not a public address"
                    " (AUDITS_ALLOW_PRIVATE_ADDRESSES=true allows it)"
                )
    return addresses[0]


@lru_cache(maxsize=1)
def tls() -> ssl.SSLContext:
    """The trusted authorities, read once: that takes longer than a request."""
    return httpx.create_ssl_context()
