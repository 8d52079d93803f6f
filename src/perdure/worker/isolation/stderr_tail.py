"""The standard error of a process: passed on as it arrives, its end kept for the record of a failure."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Final

from perdure.policy.failures import storable

_BYTES_KEPT: Final = 4 * 1024
_BYTES_PER_READ: Final = 64 * 1024
_STDERR: Final = 2


class StderrTail:
    """A pipe whose writing end is a process's standard error."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._open = True
        self._kept = b""
        self._loop.add_reader(self._reader, self._read)

    def started(self) -> None:
        """Close our copy of the writing end: the process has its own."""
        os.close(self.writer)

    def close(self) -> None:
        """Read the rest, and stop reading."""
        while self._open and self._read():
            pass
        self._end()

    @property
    def text(self) -> str | None:
        """The last few KiB; None if nothing was written."""
        return storable(self._kept.decode(errors="replace"), _BYTES_KEPT).strip() or None

    def _read(self) -> bool:
        try:
            data = os.read(self._reader, _BYTES_PER_READ)
        except BlockingIOError:
            return False
        if not data:
            self._end()
            return False
        self._kept = (self._kept + data)[-_BYTES_KEPT:]
        with suppress(OSError):  # our own may be closed
            os.write(_STDERR, data)
        return True

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._reader)
            os.close(self._reader)
