"""Awaits something that may take long, until it is done or stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def done_unless_stopped(work: Awaitable[object], stop: asyncio.Event) -> bool:
    """Await this in the caller's own task until `stop` is set, which cancels it; returns whether it was done.

    A timeout or a task group that is entered here can be left later, because the task is the same.
    """
    task = asyncio.current_task()
    is_over = was_stopped = False

    def interrupt(_: object) -> None:
        nonlocal was_stopped
        if not is_over and stop.is_set() and task is not None:
            was_stopped = True
            task.cancel()

    watching = asyncio.create_task(stop.wait())
    watching.add_done_callback(interrupt)
    try:
        await work
    except asyncio.CancelledError:
        if not was_stopped or task is None or task.uncancel() > 0:
            raise
        return False
    finally:
        is_over = True
        watching.cancel()
    return True
