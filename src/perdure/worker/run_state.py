"""The state of one `Worker.run`: the worker sets it, its parts read it."""

from __future__ import annotations

import asyncio
from typing import Any


class RunState:
    """Not started, opened, stopping, ended."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.stop = asyncio.Event()
        self.ended = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None  # that runs the worker
        self.is_hurried = False  # handlers get no time to finish
        self.is_recycled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether the task that runs the worker is being cancelled, so that the worker will close in a moment."""
        return self.task is not None and self.task.cancelling() > 0

    @property
    def is_over(self) -> bool:
        """Whether the worker has not started, or has ended."""
        return self.task is None or self.ended.is_set()
