"""Coroutines without an event loop: for those that are known never to wait."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end in this very thread; it must only call what blocks, and await nothing real.

    So one way of doing a thing serves both kinds of callers, and a connection stays in the thread it belongs to.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine that was to run at once has waited for something")
