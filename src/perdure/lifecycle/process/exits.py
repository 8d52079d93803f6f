"""How processes end, in words and in exit codes: the one place that knows the codes."""

from __future__ import annotations

import signal
from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2  # wrong arguments or settings: a restart would not help
EXIT_STACKS: Final = 2  # printed its stacks on SIGQUIT, and ended without closing
EXIT_RECYCLED: Final = 75  # closed cleanly to be recycled: start a new process at once

_SIGNALS: Final = {
    signal.SIGKILL: "perhaps by the kernel's out-of-memory killer",
    signal.SIGSEGV: "native code used memory that is not its own",
    signal.SIGABRT: "native code gave up",
    signal.SIGBUS: "native code used memory that is not there",
    signal.SIGXCPU: "its limit of processor time was reached",
}


def how_it_ended(code: int) -> str:
    """What a process's return code means: its exit code, or the signal that killed it if negative."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        by = signal.Signals(-code)
    except ValueError:
        return f"was killed by signal {-code}"
    remark = _SIGNALS.get(by)
    return f"was killed by {by.name}" + (f" ({remark})" if remark else "")
