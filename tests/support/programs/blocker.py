"""Work that does not end by itself."""

from __future__ import annotations

import asyncio


class Blocker:
    """Lasts until it is let go, and may be deaf to cancellation."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.over = asyncio.Event()
        self.cancellations = 0
        self._deaf = deaf

    async def __call__(self) -> str:
        while not self.over.is_set():
            try:
                await self.over.wait()
            except asyncio.CancelledError:
                self.cancellations += 1
                if not self._deaf:
                    raise
        return "done"
