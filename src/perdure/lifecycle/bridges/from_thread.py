"""From a thread to an event loop, and back with the answer."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import Final, TypeVar

Result = TypeVar("Result")

_PIECE: Final = 0.1


def result_of(future: Future[Result], *, to_the_end: bool = False) -> Result:
    """Wait in a thread, in small pieces: an interrupt reaches a thread only between two of them.

    One that is interrupted calls off what it waits for; with `to_the_end` that is waited for all the same, and the
    interrupt is raised afterwards.
    """
    try:
        while not future.done():
            wait([future], timeout=_PIECE)
        return future.result()
    except BaseException:
        if to_the_end:
            wait([future])
        else:
            future.cancel()
        raise
