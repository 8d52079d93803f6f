"""A process that does not outlive the one that started it.

On Linux the kernel sends the signal, whatever state the process is in. Elsewhere nothing happens here, and the process
must notice by itself that it has a new parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal when the process `parent`, which must be the one that started us, is gone; at once if it is."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask
        os.kill(os.getpid(), by)
