"""Ends a handler's forked child that returns into the worker instead of exiting.

A handler may fork, and the child may do anything until it ends or runs another program. If it returns instead (a failed
`exec` is enough), it runs inside a copy of the worker: with the same claims, the same connections and an event loop
whose files belong to the parent. Continuing there would run jobs twice.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import Final
from weakref import WeakSet

_EXIT_CODE: Final = 70
_STDERR: Final = 2
_LAST_WORDS: Final = (
    "perdure: a handler forked, and its child came back into the worker: the child ends here. "
    "Let it end with os._exit, also where exec fails.\n"
)


class Forks:
    """Knows whether this process is a forked child of the worker's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._is_child = False
        _ALL.add(self)

    def end_child(self) -> None:
        """End this process if it is a forked child."""
        if self._is_child:
            with suppress(OSError):
                os.write(_STDERR, _LAST_WORDS.encode())
            os._exit(_EXIT_CODE)

    def forked(self) -> None:
        """Runs in the child, right after a fork."""
        self._is_child = True
        if threading.get_ident() == self._thread and not self._loop.is_closed():
            self._loop.call_soon(self.end_child)  # its handler may wait before it returns


_ALL: Final[WeakSet[Forks]] = WeakSet()  # a hook cannot be removed, so there is one for all


def _note_fork() -> None:
    for forks in _ALL:
        forks.forked()


os.register_at_fork(after_in_child=_note_fork)
