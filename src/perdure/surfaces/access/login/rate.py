"""Limits failed logins: per address, and in total.

Only failures count. Memory is bounded: with too many addresses, the oldest is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network
from typing import Final

from msgspec import Struct

from perdure.clock import Clock
from perdure.surfaces.access.requests.authority import read_address

_ADDRESSES_REMEMBERED: Final = 4_096
_IPV6_CUSTOMER_BITS: Final = 64  # bits of an IPv6 address that one customer has


class _Window(Struct):
    ends: float
    failures: int = 0


class LoginRate:
    """Counts failures of the last window."""

    def __init__(self, clock: Clock, *, of_one: int, of_all: int, window: timedelta) -> None:
        self._clock = clock
        self._of_one = of_one
        self._of_all = of_all
        self._span = window.total_seconds()
        self._windows: OrderedDict[str, _Window] = OrderedDict()
        self._all_addresses = _Window(0.0)

    def wait(self, address: str | None) -> float:
        """Count an attempt and return 0.0, or return how many seconds this address must wait."""
        now = self._clock.monotonic()
        own, all_addresses = self._window(_house(address), now), self._all_addresses
        if now >= all_addresses.ends:
            all_addresses = self._all_addresses = _Window(now + self._span)
        waits = [
            window.ends - now
            for window, most in ((own, self._of_one), (all_addresses, self._of_all))
            if window.failures >= most
        ]
        if waits:
            return max(waits)
        own.failures += 1  # before the token is looked up, so that concurrent attempts are counted too
        all_addresses.failures += 1
        return 0.0

    def forgive(self, address: str | None) -> None:
        """The attempt did not fail: take it back, and forget the failures of this address."""
        self._windows.pop(_house(address), None)
        self._all_addresses.failures = max(0, self._all_addresses.failures - 1)

    def _window(self, house: str, now: float) -> _Window:
        known = self._windows.get(house)
        if known is None or now >= known.ends:
            known = self._windows[house] = _Window(now + self._span)
            self._windows.move_to_end(house)
            while len(self._windows) > _ADDRESSES_REMEMBERED:
                self._windows.popitem(last=False)
        return known


def _house(address: str | None) -> str:
    known = read_address(address) if address else None
    if isinstance(known, IPv6Address):
        return str(IPv6Network((known, _IPV6_CUSTOMER_BITS), strict=False))
    return str(known or address or "unix")
