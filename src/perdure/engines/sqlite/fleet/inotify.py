"""Linux's inotify, as far as it is needed: reports when one file is written to or opened."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Final

_IN_MODIFY: Final = 0x2
_IN_OPEN: Final = 0x20
_EVENT: Final = struct.Struct("iIII")
_READ_BYTES: Final = 65_536


def watch(path: str) -> int:
    """A descriptor that becomes readable when the file is written to or opened.

    Raises OSError where there is no inotify, or the file cannot be watched.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        init, add = libc.inotify_init1, libc.inotify_add_watch
    except AttributeError as error:
        raise OSError("this system has no inotify") from error
    descriptor: int = init(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1 failed")
    if add(descriptor, os.fsencode(path), _IN_MODIFY | _IN_OPEN) < 0:
        code = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(code, "inotify_add_watch failed")
    return descriptor


def what_happened(descriptor: int) -> tuple[bool, bool]:
    """Read all pending events; whether the file was written to, and whether it was opened."""
    masks = 0
    while True:
        try:
            events = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return bool(masks & _IN_MODIFY), bool(masks & _IN_OPEN)
        position = 0
        while position < len(events):
            _, mask, _, length = _EVENT.unpack_from(events, position)
            masks |= mask
            position += _EVENT.size + length
