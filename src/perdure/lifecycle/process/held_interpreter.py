"""Reads stacks of other threads without letting them run on meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_READ_WITHIN_SECONDS: Final = 1.0  # how long other threads wait for the interpreter at the most


@contextmanager
def held_interpreter() -> Iterator[None]:
    """While entered, this thread keeps the interpreter, unless it waits or calls code that lets it go.

    On Python 3.11 a thread that runs on while its frames are read can end the process.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_READ_WITHIN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
