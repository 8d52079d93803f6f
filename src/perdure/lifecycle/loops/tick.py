"""One running tick, which may take too long and may not stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

from perdure.lifecycle.timer import Timer, pause

GRACE_SECONDS: Final = 1.0
"""Seconds that a tick has to stop when told to."""

_LEFT_BEHIND: Final[set[asyncio.Task[Any]]] = set()  # the event loop alone does not keep a task alive


class Tick:
    """A task with a limit: past it the task is told to stop, and a second later it is abandoned."""

    def __init__(
        self,
        work: Coroutine[Any, Any, timedelta],
        name: str,
        limit: timedelta,
        timer: Timer,
        on_end: Callable[[], None],
    ) -> None:
        self._timer = timer
        self._on_end = on_end
        self.since = timer.monotonic()
        self.ended: float | None = None
        self.overran = False
        self.given_up = False
        self.deadline = self.since + limit.total_seconds()
        self._task = asyncio.get_running_loop().create_task(work, name=f"perdure {name}")
        self._task.add_done_callback(self._note_end)

    def stop(self) -> None:
        """Tell it to stop, because its limit is reached."""
        self.overran = True
        self.deadline = self._timer.monotonic() + GRACE_SECONDS
        self._task.cancel()

    def give_up(self) -> None:
        """Abandon it: it does not stop."""
        self.given_up = True
        self.deadline = float("inf")

    def result(self) -> timedelta:
        """What the tick returns about the next wait; raises what it raised."""
        return self._task.result()

    def error(self) -> BaseException | None:
        """What it raised, unless that was its cancellation."""
        return None if self._task.cancelled() else self._task.exception()

    async def call_off(self) -> None:
        """Tell it to stop and wait up to the grace; then abandon it."""
        if not self._task.done():
            self._task.cancel()
            over = asyncio.Event()
            self._task.add_done_callback(lambda _: over.set())
            try:
                await pause(self._timer, over, GRACE_SECONDS)
            finally:
                if not self._task.done():
                    _leave_behind(self._task)

    def _note_end(self, task: asyncio.Task[timedelta]) -> None:
        self.ended = self._timer.monotonic()
        if not task.cancelled():
            task.exception()  # retrieved here, so that it is not reported as forgotten
        self._on_end()


def _leave_behind(task: asyncio.Task[Any]) -> None:
    """Forget a task that does not end: nothing waits for it any more, not even the end of the event loop."""
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_LEFT_BEHIND.discard)
    asyncio.tasks._unregister_task(task)  # noqa: SLF001 - asyncio.run would wait for it for ever
    task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001 - its end is reported already
