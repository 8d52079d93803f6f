"""Where a URL leads, and how it may be shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from perdure.errors import ArgumentError

_PORTS: Final = {"http": 80, "https": 443}
_URL_LIMIT_CHARACTERS: Final = 2_000


class Target(Struct, frozen=True):
    """Where a URL leads: who is asked, and for what."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """How errors name the receiver. Path and query are left out: they may be secrets."""
        return f"{self.scheme}://{self.authority}"


def read_target(url: str) -> Target:
    """Read an http or https URL; raises ArgumentError and says what is wrong with it."""
    if len(url) > _URL_LIMIT_CHARACTERS:
        raise ArgumentError("url", f"must have at most {_URL_LIMIT_CHARACTERS:,} characters, got {len(url):,}")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise ArgumentError("url", "must have no spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".")
        host = host if ":" in host else host.encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise ArgumentError("url", f"cannot be read: {error}") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not host:
        raise ArgumentError(
            "url", f"must begin with https:// or http:// and name a host, got {scheme or 'no'!r} scheme"
        )
    if "%" in host:
        raise ArgumentError("url", "must name a host without a zone or escapes (%)")
    if port == 0:
        raise ArgumentError("url", "must name a port from 1 to 65535, got 0")
    if parts.username is not None or parts.password is not None:
        raise ArgumentError("url", "must have no user name or password: send a header instead")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(scheme, host, port or _PORTS[scheme], _ascii(path))


def _ascii(path: str) -> str:
    """A path as it goes over the wire: other characters as %XX of their UTF-8."""
    return "".join(one if one.isascii() else "".join(f"%{byte:02X}" for byte in one.encode()) for one in path)


def shown_url(url: str) -> str:
    """A URL without the values of its query: those are often secrets."""
    head, mark, _ = url.partition("?")
    return f"{head}?***" if mark else head
