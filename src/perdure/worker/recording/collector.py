"""Batches without a timer: the first item goes out at once, later ones go out together when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Collector(Generic[Item]):
    """Hands items on in batches of at most `most`, with at most `lanes` batches at once. `hand_on` must not raise."""

    def __init__(self, hand_on: Callable[[list[Item]], Awaitable[None]], most: int, lanes: int = 1) -> None:
        self._hand_on = hand_on
        self._most = most
        self._lanes = lanes
        self._pending: list[Item] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, items: Iterable[Item]) -> None:
        """Add these items."""
        self._pending += items
        if self._pending and len(self._tasks) < self._lanes:
            self._tasks.add(asyncio.get_running_loop().create_task(self._run()))

    def take_back(self) -> list[Item]:
        """Remove and return the items that have not gone out."""
        pending, self._pending = self._pending, []
        return pending

    async def drain(self) -> None:
        """Wait until all items are handed on."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Stop handing on."""
        self._pending.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[: self._most], self._pending[self._most :]
                await self._hand_on(batch)
        finally:  # in the same turn, so that a later `add` starts another
            self._tasks.difference_update({asyncio.current_task()})
