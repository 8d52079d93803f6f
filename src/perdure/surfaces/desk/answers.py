"""A cache that open pages share: three tabs with the same figures cost one query.

An answer is reused while it is fresh. Concurrent callers wait for the same query. A failure is never cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from msgspec import Struct

T = TypeVar("T")
ANSWER_FRESH_SECONDS: Final = 1.0


class _Kept(Struct):
    task: asyncio.Task[Any]
    until: float


class Answers:
    """A short-lived cache of query results."""

    def __init__(self, fresh_for: float = ANSWER_FRESH_SECONDS) -> None:
        self._fresh_for = fresh_for
        self._kept: dict[Hashable, _Kept] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]], fresh_for: float | None = None) -> T:
        """The result of `ask`, or the cached one of the same key.

        `fresh_for` replaces the default lifetime, in seconds; a disabled cache ignores it.
        """
        loop = asyncio.get_running_loop()
        kept = self._kept.get(key)
        if kept is None or not self._holds(kept, loop):
            self._forget_old(loop)
            lasts = self._fresh_for if fresh_for is None or not self._fresh_for else fresh_for
            kept = self._kept[key] = _Kept(loop.create_task(_called(ask)), loop.time() + lasts)
        answer: T = await asyncio.shield(kept.task)
        return answer

    def forget(self) -> None:
        """Drop all answers after a change, so that the next caller sees the change."""
        self._kept.clear()

    def _holds(self, kept: _Kept, loop: asyncio.AbstractEventLoop) -> bool:
        if not kept.task.done():
            return kept.task.get_loop() is loop
        if kept.task.cancelled() or kept.task.exception() is not None:
            return False
        return loop.time() < kept.until

    def _forget_old(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drop expired answers: those of a large database use megabytes."""
        self._kept = {key: kept for key, kept in self._kept.items() if self._holds(kept, loop)}


async def _called(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()
