"""Async perdure for sync callers: one background thread with an event loop, shared by the whole process.

Flask, Django and scripts call `enqueue_sync`; it runs the same coroutine as the async version, so there is no second,
blocking implementation.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Portal:
    """Runs coroutines on a loop of its own for callers that have none. Starts itself, also after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end; returns or raises what it does."""
        loop = self._running_loop()
        if threading.current_thread().name == _NAME:
            coroutine.close()
            raise RuntimeError("a sync call from inside the portal's own loop would wait for itself")
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def close(self) -> None:
        """End the thread, if it runs."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None and self._pid == os.getpid():
            return self._loop
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(loop,), name=_NAME, daemon=True).start()
                self._loop, self._pid = loop, os.getpid()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


_NAME = "perdure-portal"
