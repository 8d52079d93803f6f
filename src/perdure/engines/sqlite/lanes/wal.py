"""The write-ahead log as a file.

A commit appends to the log and flushes it. While the file grows, each flush must also write the file's new size, which
makes a small commit two to three times as slow as one that writes over old ground. SQLite keeps the file between
checkpoints, so that holds only for the first round of a process; a writer that has shown that it writes often
therefore grows the file ahead, a piece after each commit. SQLite ignores what lies beyond the last frame: zeros
carry no valid frame header. It is done under the write lock, so that no other process appends at the same time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

AUTOCHECKPOINT_PAGES: Final = 4000
WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
_AHEAD_BYTES: Final = (AUTOCHECKPOINT_PAGES + 500) * 4120  # pages with their frame headers
_ZERO_BYTES: Final = bytes(2 * 1024 * 1024)


def size(path: str) -> int:
    """How large the log is."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - on the way of every commit
    except OSError:
        return 0


def is_grown(path: str) -> bool:
    """Whether the log has the size it keeps between checkpoints."""
    return size(path) >= _AHEAD_BYTES


def grow(path: str) -> None:
    """Append zeros to the log. Only under the write lock; a full disk does no harm."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, _ZERO_BYTES, os.fstat(descriptor).st_size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def touch(path: str) -> None:
    """Make the watchers of the log look at once."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDONLY))
