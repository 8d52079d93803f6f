"""A thread for one call that must not wait for a thread of the pool.

The threads of `asyncio.to_thread` are few, and shared with all handlers: some that block for a minute take all of them.
What holds the write lock, or keeps a store from closing, cannot stand in line behind those.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from perdure.engines.sqlite.lanes.lane import resolve

T = TypeVar("T")


def in_own_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Make a blocking call; the future gets its result or error. Cancelling the future does not stop the call."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = call()
        except Exception as raised:  # noqa: BLE001 - passed to the caller
            error = raised
        with suppress(RuntimeError):  # the loop has been closed: no caller waits any more
            loop.call_soon_threadsafe(resolve, future, result, error)

    threading.Thread(target=run, name="perdure-sqlite-call", daemon=True).start()
    return future
