"""Interpreter settings for a process that only runs a worker; other processes keep theirs.

A worker makes and drops a thousand small objects in a few milliseconds, and hardly ever a reference cycle. Python's
garbage collection is therefore made less frequent, and objects loaded before the work begins are excluded from it.

With SQLite, a thread writes while the event loop runs jobs. After each statement it must reacquire the GIL, for which
Python lets it wait 5 ms, as long as a whole batch takes. If handlers run in threads, a shorter interval costs more than
it gains, because all threads then compete for the GIL.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

from perdure.kinds.kind import Mode, Registry

_OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000  # collections of the younger generations for each one of the oldest
_COLLECTIONS_BEFORE_OLDER: Final = 20
_SWITCH_INTERVAL_SECONDS: Final = 0.0005


def set_up_for_work(kinds: Registry) -> None:
    """Prepare this process for these kinds of jobs, after all imports."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, _COLLECTIONS_BEFORE_OLDER, _COLLECTIONS_BEFORE_OLDER)
    if all(kind.mode is not Mode.THREAD for kind in kinds.values()):
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_SECONDS))
