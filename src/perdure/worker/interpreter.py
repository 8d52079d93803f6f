"""How the interpreter is set up in a process that does nothing but work; in anybody else's it is left as it is.

A worker makes and drops a thousand small objects in a few milliseconds, and hardly ever a circle of them. Python's
search for circles is therefore made rarer, and what was loaded before the work begins is taken out of it.

With SQLite, a thread writes while the event loop runs jobs. After each statement it must win the interpreter's lock
back, for which Python lets it wait 5 ms, as long as a whole batch takes. Where handlers run in threads of their own a
shorter wait costs more than it brings: then all of them ask for the lock.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

from perdure.kinds.kind import Mode, Registry

_NEW_OBJECTS: Final = 20_000  # between two searches for circles
_GENERATIONS: Final = 20
_LONGEST_WAIT: Final = 0.0005


def set_up_for_work(kinds: Registry) -> None:
    """Prepare this process for these kinds of jobs, once all is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _GENERATIONS, _GENERATIONS)
    if all(kind.mode is not Mode.THREAD for kind in kinds.values()):
        sys.setswitchinterval(min(sys.getswitchinterval(), _LONGEST_WAIT))
