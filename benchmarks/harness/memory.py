"""Memory that costs the same from the first second to the last.

Many virtual machines give memory that is free back to their host. What was used a moment ago is then at hand at once,
some hundred megabytes of it, and whatever is needed beyond that is ten times as slow to get. A run that fills files for
a minute, as every database does, would be fast until the first is used up, whatever the database does.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

AT_HAND = 3 * 2**30  # bytes: more than was seen to be at hand


@contextmanager
def memory_at_hand_in_use(size: int = AT_HAND) -> Iterator[None]:
    """Hold what memory is at hand, in small pages, so that everybody has to ask for more from the start."""
    with mmap.mmap(-1, size) as held:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            held.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, size, mmap.PAGESIZE):
            held[page] = 1
        yield
