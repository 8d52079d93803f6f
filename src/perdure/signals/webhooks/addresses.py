"""Which addresses a sender may connect to. Untrusted users often name the receivers.

A name is resolved once for each request. All of its addresses must be allowed, and the connection goes to one of these
very addresses, so a name that resolves to something else a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from msgspec import Struct

from perdure.errors import SettingsError
from perdure.policy.outbound.target import Target
from perdure.signals.webhooks.errors import SendFailed, SendRefused

_UNICAST: Final = IPv6Network("2000::/3")  # other ranges are local, reserved, or lead to IPv4 by a gateway
_TUNNELS: Final = tuple(IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
_SPECIAL: Final = tuple(IPv4Network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"))

Network = IPv4Network | IPv6Network


class Place(Struct, frozen=True):
    """One address to connect to: what `socket.connect` of this family takes."""

    family: int
    address: tuple[str, int] | tuple[str, int, int, int]

    @property
    def ip(self) -> str:
        """The IP address."""
        return self.address[0]


Resolve = Callable[[str, int], Awaitable[list[Place]]]


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet.

    False for private, loopback, link-local and multicast addresses, for reserved ones, and for IPv6 addresses that
    lead to IPv4.
    """
    ip = ip_address(address.partition("%")[0])
    if not ip.is_global or ip.is_multicast:
        return False
    if isinstance(ip, IPv4Address):
        return not any(ip in net for net in _SPECIAL)
    return ip in _UNICAST and not any(ip in net for net in _TUNNELS)


class AddressRules:
    """Which addresses may be called: public ones, and those that the settings allow beside them.

    `allow_private` is True for all addresses, or lists networks and host names: ``["10.1.0.0/16", "hooks.internal"]``.
    """

    def __init__(self, allow_private: bool | Collection[str] = False) -> None:
        if isinstance(allow_private, str):
            raise SettingsError("allow_private", f"must be True, False or a list of texts, got {allow_private!r}")
        listed = () if isinstance(allow_private, bool) else tuple(allow_private)
        self._is_all_allowed = allow_private is True
        self._networks = tuple(net for net in map(_network, listed) if net is not None)
        self._hosts = frozenset(one.lower().rstrip(".") for one in listed if _network(one) is None)

    def check(self, target: Target, places: Collection[Place]) -> None:
        """Raise `SendRefused` if one of these addresses of the target must not be called."""
        if self._is_all_allowed or target.host.lower() in self._hosts:
            return
        for place in places:
            if not is_public(place.ip) and not self._is_listed(place.ip):
                raise SendRefused(
                    f"{target.origin} leads to {place.ip}, which is not a public address;"
                    " to allow it, list it in Webhooks(app, allow_private=…);"
                    " for an alert channel, save it with allow_private=True or --allow-private"
                )

    def _is_listed(self, address: str) -> bool:
        ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
        return any(ip in net for net in self._networks if net.version == ip.version)


def _network(text: str) -> Network | None:
    """The network that a text names; None if it is a host name."""
    try:
        return ip_network(text)
    except ValueError as error:
        if "/" in text or "has host bits set" in str(error):
            raise SettingsError("allow_private", f"is not a network: {text!r} ({error})") from None
        return None


async def resolve(host: str, port: int) -> list[Place]:
    """All addresses of a host, as the system's resolver gives them; raises `SendFailed` if it has none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SendFailed(f"{host} cannot be resolved: {error}") from None
    places = [
        Place(family, address)
        for family, _, _, _, address in found
        if family in {socket.AF_INET, socket.AF_INET6} and isinstance(address[0], str)
    ]
    if not places:
        raise SendFailed(f"{host} has no IP address")
    return places
