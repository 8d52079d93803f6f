"""The state of one `Worker.run`: the worker sets it, and its parts ask."""

from __future__ import annotations

import asyncio
from typing import Any


class RunState:
    """From not started, over opened and stopping, to ended."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.stop = asyncio.Event()
        self.ended = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None  # that runs the worker
        self.is_hurried = False  # handlers are not given the time to finish
        self.is_recycled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether the task that runs the worker is being cancelled, so that the worker will close in a moment."""
        return self.task is not None and self.task.cancelling() > 0

    @property
    def is_over(self) -> bool:
        """Whether the worker does not run: not yet, or not any more."""
        return self.task is None or self.ended.is_set()
