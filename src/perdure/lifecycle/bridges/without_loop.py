"""Coroutines without an event loop: for those that never suspend."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_without_loop(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end in this thread; it may only call blocking functions, and never suspend.

    So one implementation serves both kinds of callers, and a connection stays in its thread.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine that was to run at once has waited for something")
