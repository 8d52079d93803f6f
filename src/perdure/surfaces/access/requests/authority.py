"""Names and ports in Host and Origin headers, and which of them are ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from msgspec import Struct

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9_.-]*[a-z0-9])?)\.?(?::([0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"(https?)://([^/?#@\\]+)")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_AUTHORITY_LIMIT_CHARACTERS: Final = 260


class Authority(Struct, frozen=True):
    """A host, lower case and without brackets, and the port if one is given."""

    host: str
    port: int | None = None

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The address, if the host is one."""
        return read_address(self.host)


def read_authority(text: str) -> Authority | None:
    """Read `name`, `name:port` or `[address]:port`; None if it is none of these."""
    found = _AUTHORITY.fullmatch(text.lower()) if len(text) <= _AUTHORITY_LIMIT_CHARACTERS else None
    return Authority(found[1].strip("[]"), int(found[3]) if found[3] else None) if found else None


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address, or None. An IPv4 address that is written as IPv6 is an IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine itself."""
    address = read_address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def is_allowed(authority: Authority, hosts: Iterable[str], *, any_address: bool) -> bool:
    """Whether the desk answers to this name.

    Another site can point its own name at us (DNS rebinding), but it cannot make the browser send any other name.
    `any_address`: accept every IP address, because an address cannot be pointed elsewhere.
    """
    host = authority.host
    if is_loopback(host) or (any_address and authority.address is not None):
        return True
    return any(
        host.endswith(name[1:]) and host != name[2:] if name.startswith("*.") else host == name.strip("[]")
        for name in hosts
    )


def is_same_origin(origin: str, authority: Authority, *, is_https: bool) -> bool:
    """Whether an Origin header names the host and port to which the request was sent.

    If an undeclared proxy terminates TLS, we see http although the page has https: only host and port count then.
    """
    found = _ORIGIN.fullmatch(origin.lower())
    theirs = read_authority(found[2]) if found else None
    if found is None or theirs is None or (is_https and found[1] != "https"):
        return False
    implied = _DEFAULT_PORTS[found[1]]
    ours = authority.port
    return theirs.host == authority.host and (theirs.port or implied) == (implied if ours is None else ours)
