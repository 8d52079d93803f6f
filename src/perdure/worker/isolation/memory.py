"""The memory of a process, and the memory limit of an attempt."""

from __future__ import annotations

import ctypes
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO: Final = "500"
_M_ARENA_MAX: Final = -8
_MIB: Final = 1024 * 1024


def resident_bytes() -> int:
    """The resident memory of this process in bytes; 0 where the system does not report it."""
    return _pages(1) * resource.getpagesize()


class MemoryLimit:
    """Inside this context the process may allocate this many bytes beyond those already mapped; None: no limit.

    An allocation beyond it fails with MemoryError. If the whole machine runs out of memory, the kernel kills this
    process before the worker.
    """

    def __init__(self, allowed: int | None) -> None:
        self._allowed = allowed
        self._before = resource.getrlimit(resource.RLIMIT_AS)
        with suppress(OSError):
            _OOM_SCORE.write_text(_FIRST_TO_GO, encoding="ascii")
        if allowed is not None:
            with suppress(AttributeError):  # glibc only: each thread's own arena would count as 64 MiB
                ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)

    def __enter__(self) -> None:
        if self._allowed is not None:
            soft, hard = self._before
            wanted = _pages(0) * resource.getpagesize() + self._allowed
            bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *bounds]), hard))

    def __exit__(self, *_: object) -> None:
        """Lift the limit, so that the process can report what happened."""
        if self._allowed is not None:
            resource.setrlimit(resource.RLIMIT_AS, self._before)

    def explain(self, message: str) -> str:
        """The cause of a MemoryError, in words."""
        if self._allowed is None:
            return message or "the machine has no more memory to give"
        limit = f"the attempt reached its memory limit of {self._allowed / _MIB:.0f} MiB"
        return f"{limit}: {message}" if message else limit


def _pages(field: int) -> int:
    try:
        return int(_STATM.read_text(encoding="ascii").split()[field])
    except OSError:
        return 0
