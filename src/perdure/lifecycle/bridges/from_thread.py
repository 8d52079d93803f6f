"""From a thread to an event loop, and back with the answer."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import Final, TypeVar

Result = TypeVar("Result")

_POLL_INTERVAL_SECONDS: Final = 0.1


def result_of(future: Future[Result], *, to_the_end: bool = False) -> Result:
    """Wait in a thread, in short waits: an interrupt reaches a thread only between two of them.

    An interrupted caller cancels what it waits for; with `to_the_end` it waits for the end first, and raises the
    interrupt afterwards.
    """
    try:
        while not future.done():
            wait([future], timeout=_POLL_INTERVAL_SECONDS)
        return future.result()
    except BaseException:
        if to_the_end:
            wait([future])
        else:
            future.cancel()
        raise
