"""A process that does not outlive its parent.

On Linux the kernel sends the signal, in any state of the process. Elsewhere nothing happens here, and the process must
notice by itself that it has a new parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Receive this signal when the parent process, whose pid is `parent`, is gone; at once if it is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:  # it died before the request
        os.kill(os.getpid(), by)
