"""Work in batches without a timer: the first goes out at once, what comes meanwhile goes out together afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Collector(Generic[Item]):
    """Hands on what it is given, at most `most` at a time and one batch after the other. `hand_on` must not raise."""

    def __init__(self, hand_on: Callable[[list[Item]], Awaitable[None]], most: int) -> None:
        self._hand_on = hand_on
        self._most = most
        self._pending: list[Item] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, items: Iterable[Item]) -> None:
        """Take charge of these."""
        self._pending += items
        if self._task is None and self._pending:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def take_back(self) -> list[Item]:
        """What has not gone out yet: it never will."""
        pending, self._pending = self._pending, []
        return pending

    async def settle(self) -> None:
        """Wait until everything was handed on."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Hand on nothing more."""
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[: self._most], self._pending[self._most :]
                await self._hand_on(batch)
        finally:
            self._task = None
