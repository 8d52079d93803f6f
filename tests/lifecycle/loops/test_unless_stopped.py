"""Work that a stop cancels."""

from __future__ import annotations

import asyncio

import pytest

from perdure.lifecycle.loops.unless_stopped import done_unless_stopped


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_work_that_ends_is_done_and_its_error_is_raised() -> None:
    stop = asyncio.Event()
    assert await done_unless_stopped(asyncio.sleep(0), stop)

    async def fail() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError):
        await done_unless_stopped(fail(), stop)


async def test_a_stop_ends_the_wait_and_the_task_goes_on() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    assert not await done_unless_stopped(for_ever(), stop)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_cancellation_from_outside_is_not_taken_for_a_stop() -> None:
    async def waiting() -> bool:
        return await done_unless_stopped(for_ever(), asyncio.Event())

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_around_the_wait_still_ends_it() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await done_unless_stopped(for_ever(), asyncio.Event())
