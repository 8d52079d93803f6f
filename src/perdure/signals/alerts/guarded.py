"""Limits a library while it runs in a thread: it connects to public addresses only, and logs nothing.

A library such as Apprise resolves names and follows its own ways, so its address says little about where it connects.
The interpreter reports each connection before it is made, with the very address (an audit hook): that is where it is
refused. The hook is set when the first watch begins, and looks at nothing outside of watched threads.
"""

from __future__ import annotations

import errno
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from perdure.signals.webhooks.addresses import is_public
from perdure.signals.webhooks.errors import SendRefused

_CONNECTS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_ASKS: Final = "socket.getaddrinfo"
_TELLING: Final = (
    "urllib3.connectionpool",
    "urllib3.connection",
    "urllib3.util.retry",
    "requests_oauthlib",
    "websocket",
)
"""Loggers that write the address of a request, which holds a key."""

_thread = threading.local()
_once = threading.Lock()
_is_set = False


class Watch:
    """What one call has done: whether it asked for a host, connected, or was refused an address."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self.has_asked = False
        self.has_connected = False
        self.refused: str | None = None

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch what this thread does, in this block."""
        _set_up()
        _thread.watch = self
        try:
            yield
        finally:
            _thread.watch = None

    def raise_refused(self) -> None:
        """Raise SendRefused if an address was refused, which the library may have taken for an outage."""
        if self.refused is not None:
            raise SendRefused(
                f"the service leads to {self.refused}, which is not a public address;"
                " to allow it, save the channel with allow_private=True or --allow-private"
            )

    def connects(self, address: object) -> None:
        """Refuse an address that is not public, as the system does, so that the library closes its socket."""
        if not self._allow_private:
            for place in _places(address):
                if not _is_fine(place):
                    self.refused = place
                    raise PermissionError(errno.EACCES, "not a public address")
        self.has_connected = True


def _places(address: object) -> list[str]:
    """The IP addresses that a socket is about to connect to."""
    if not isinstance(address, tuple) or not address or not isinstance(address[0], str):
        return ["a socket of this machine"]
    try:
        found = socket.getaddrinfo(address[0], None, type=socket.SOCK_STREAM)
    except OSError:
        return []  # then it cannot be reached either
    return [str(each[0]) for _, _, _, _, each in found]


def _is_fine(place: str) -> bool:
    try:
        return is_public(place)
    except ValueError:
        return False


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if event not in _CONNECTS and event != _ASKS:
        return
    watch: Watch | None = getattr(_thread, "watch", None)
    if watch is None:
        return
    if event == _ASKS:
        watch.has_asked = True
    elif (address := args[1]) is not None:
        watch.connects(address)


def _is_unwatched(_: logging.LogRecord) -> bool:
    return getattr(_thread, "watch", None) is None


def _set_up() -> None:
    global _is_set  # noqa: PLW0603 - an audit hook belongs to the whole process, and stays
    with _once:
        if not _is_set:
            sys.addaudithook(_heard)
            for name in _TELLING:
                logging.getLogger(name).addFilter(_is_unwatched)
            _is_set = True
